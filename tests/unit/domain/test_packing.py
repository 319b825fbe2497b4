"""Packing never exceeds its budget and keeps what matters."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.domain.packing import CAPS, SECTIONS, TITLES, Item, estimate_tokens, newest_valid, pack

START = datetime(2026, 3, 1, tzinfo=UTC)


def item(key: str, section: str = "turns", **options: object) -> Item:
    """An item with a line of about ten tokens unless told otherwise."""
    line, score, minute = (
        options.pop("line", f"{key} " + "x" * 36),
        options.pop("score", 1.0),
        options.pop("minute", 0),
    )
    assert isinstance(line, str)
    assert isinstance(score, float)
    assert isinstance(minute, int)
    return Item(key, section, line, score, START + timedelta(minutes=minute), **options)  # type: ignore[arg-type]


LINES = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1, max_size=200)
ITEMS = st.lists(
    st.builds(
        lambda key, section, line, score: item(str(key), section, line=line, score=score),
        st.integers(0, 30), st.sampled_from(SECTIONS), LINES, st.floats(0, 1),
    ),
    max_size=25,
)  # fmt: skip


class TestPack:
    @given(ITEMS, st.integers(1, 600))
    def test_the_budget_holds(self, items: list[Item], budget: int) -> None:
        """For any items and any budget the text fits, and its tokens are those of the text."""
        packed = pack(items, budget_tokens=budget)

        assert packed.tokens == estimate_tokens(packed.text) <= budget
        assert len({each.key for each in packed.items}) == len(packed.items)

    def test_the_best_stay(self) -> None:
        """Beyond the budget the lowest scores are dropped, whole lines only."""
        items = [item(str(n), score=n / 10) for n in range(10)]
        packed = pack(items, budget_tokens=45)

        assert {each.key for each in packed.items} == {"7", "8", "9"}
        assert all(each.line in packed.text for each in packed.items)

    def test_a_line_that_does_not_fit_makes_room_for_smaller_ones(self) -> None:
        """An enormous turn is left out, not cut, while others fit."""
        packed = pack([item("huge", line="x" * 4000, score=1.0), item("small", score=0.1)], budget_tokens=60)

        assert [each.key for each in packed.items] == ["small"]

    def test_alone_too_long_is_cut(self) -> None:
        """When nothing fits, the best line is cut and says so."""
        packed = pack([item("huge", line="字" * 500, score=1.0)], budget_tokens=60)

        assert packed.text.endswith("…")
        assert 50 <= packed.tokens <= 60

    def test_a_budget_for_nothing_gives_nothing(self) -> None:
        """Where not even a title fits, the context is empty."""
        assert pack([item("a")], budget_tokens=2).text == ""

    @pytest.mark.parametrize("section", sorted(CAPS))
    def test_caps_leave_room_for_the_answer(self, section: str) -> None:
        """A capped section cannot push the best recalled turns out."""
        blind = [item(f"b{n}", section, score=1.0, minute=n) for n in range(50)]
        packed = pack([*blind, *[item(f"t{n}", score=0.5) for n in range(50)]], budget_tokens=400)
        spent = sum(estimate_tokens(each.line) for each in packed.items if each.section == section)

        assert 0 < spent <= 400 * CAPS[section]
        assert sum(1 for each in packed.items if each.section == "turns") >= 15

    def test_what_is_left_goes_to_the_capped(self) -> None:
        """With little recalled, all recent turns are shown, oldest first, after everything else."""
        recent = [item(f"r{n}", "recent", minute=n) for n in range(9)]
        packed = pack([*reversed(recent), item("t")], budget_tokens=400)

        assert [each.key for each in packed.items] == ["t", *(f"r{n}" for n in range(9))]
        assert packed.text.index(TITLES["turns"]) < packed.text.index(TITLES["recent"])

    def test_the_newest_of_the_recent_stay(self) -> None:
        """Under pressure the hot tail keeps its newest turns."""
        recent = [item(f"r{n}", "recent", minute=n) for n in range(9)]
        packed = pack([*recent, *[item(f"t{n}") for n in range(40)]], budget_tokens=200)

        kept = [each.key for each in packed.items if each.section == "recent"]
        assert 2 <= len(kept) <= 4
        assert kept == [f"r{n}" for n in range(9)][-len(kept) :]

    def test_a_turn_is_printed_once(self) -> None:
        """A turn that is recent and recalled takes one line."""
        packed = pack([item("same", "recent"), item("same", "turns")], budget_tokens=400)

        assert len(packed.items) == 1


class TestNewestValid:
    def test_one_truth_a_lineage(self) -> None:
        """Of a lineage the valid version stays, of two valid ones the newer."""
        lineage = UUID(int=1)
        versions = [
            item("v1", lineage_id=lineage, version=1),
            item("v2", lineage_id=lineage, version=2),
            item("v3", lineage_id=lineage, version=3, is_valid=False),
        ]

        assert [each.key for each in newest_valid(versions)] == ["v2"]


class TestEstimate:
    @pytest.mark.parametrize(
        ("text", "tokens"),
        [("", 0), ("abcd", 1), ("abcde", 2), ("昨日は雨", 4), ("어제 비가", 5), ("下雨了 ok", 4), ("🙂", 1)],
    )
    def test_wide_characters_count_one_each(self, text: str, tokens: int) -> None:
        """Han, kana, Hangul and emoji are a token each, four other characters make one."""
        assert estimate_tokens(text) == tokens
