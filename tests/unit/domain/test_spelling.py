"""Spelling: slips are counted, and short names forgive none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.domain.spelling import count_slips, fold_name, is_misspelt, parts_of_unspaced


class TestSlips:
    @pytest.mark.parametrize(
        ("left", "right", "slips"),
        [("melanie", "melany", 2), ("carolien", "caroline", 1), ("abcdef", "abdef", 1), ("", "ab", 2)],
    )
    def test_they_are_counted(self, left: str, right: str, slips: int) -> None:
        """A letter wrong, missing or too many is one; two neighbours swapped are one."""
        assert count_slips(left, right) == count_slips(right, left) == slips

    @given(st.text(max_size=8), st.text(max_size=8))
    def test_bounds(self, left: str, right: str) -> None:
        """None exactly for equals, never more than the longer has letters."""
        slips = count_slips(left, right)

        assert (slips == 0) == (left == right)
        assert slips <= max(len(left), len(right))


class TestMisspelt:
    def test_short_names_forgive_nothing(self) -> None:
        """Jon is not Joan, and longer names forgive more."""
        assert not is_misspelt("jon", "joan")
        assert is_misspelt("marai", "maria")
        assert is_misspelt("cathrina", "catharine")

    def test_marks_and_kana_are_folded(self) -> None:
        """An accent or the other kana is no slip at all."""
        assert is_misspelt("zoe", "zoë")
        assert fold_name("ミサキ") == "みさき"
        assert is_misspelt("kathy", "kathie")


class TestParts:
    def test_of_names_without_spaces(self) -> None:
        """Given name of three characters, both halves of four, nothing of others."""
        assert parts_of_unspaced("김민호") == ("민호",)
        assert parts_of_unspaced("田中健太") == ("田中", "健太")
        assert parts_of_unspaced("美咲") == ()
