"""Policies are checked when they are made, presets are what they claim, and settings say what is wrong with them."""

from dataclasses import fields

import pytest

from memoryos_pipeline.domain.policies import DEFAULT, Policy
from memoryos_pipeline.domain.policies_presets import (
    CLAIMS,
    PRESETS,
    InvalidPolicyError,
    changed,
    differences,
    find_preset,
    parse_setting,
    policy_of,
    settings_of,
)


class TestMake:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("hot", "lifo"), ("page_unit", "hours"), ("distill_when", "never"), ("cool_below", 0.0),
            ("pin_at", 1.1), ("unpin_below", 0.9), ("heat_half_life_days", 0.0), ("hot_capacity_turns", 4),
            ("min_warm_age_hours", -1.0), ("importance_floor", 0.0), ("ttl_days", 0.0), ("reinforce_factor", 0.9),
            ("bias_low", 2.0), ("knowledge_capacity", 0), ("forget", "lru"), ("evict", "newest"),
            ("reinforce_on", "seen"), ("tick", "day"), ("capacity_victim", "lfu"),
        ],
    )  # fmt: skip
    def test_a_wrong_value_is_named(self, name: str, value: object) -> None:
        """No policy exists that cannot act, and the error says which field is wrong."""
        with pytest.raises(ValueError, match=f"^{name} "):
            Policy(**{name: value})  # type: ignore[arg-type]

    def test_every_field_says_what_it_means(self) -> None:
        """A field carries a sentence, and its unit when it has one is in its name."""
        assert all(each.metadata["says"].endswith(".") or "..." in each.metadata["says"] for each in fields(Policy))

    def test_a_stronger_sign_of_use_counts_where_a_weaker_one_does(self) -> None:
        """Whoever reinforces on retrieval reinforces on injection and citation too, and not the other way round."""
        assert Policy(reinforce_on="retrieved").counted_causes == {"retrieved", "injected", "cited"}
        assert DEFAULT.counted_causes == {"injected", "cited"}
        assert Policy(reinforce_on="cited").counted_causes == {"cited"}


class TestFindPreset:
    def test_seven_presets_and_what_each_claims(self) -> None:
        """Each published design has its preset, `default` has all of them, and each says what it does."""
        assert list(PRESETS) == ["default", "seed000", "bai_lab", "a_mem", "memorybank", "mem0", "mem0g"]
        assert CLAIMS.keys() == PRESETS.keys()
        assert PRESETS["default"] == Policy()

    def test_an_unknown_one_names_those_there_are(self) -> None:
        """The error helps to the next step."""
        with pytest.raises(InvalidPolicyError, match="bai_lab"):
            find_preset("memgpt")

    @pytest.mark.parametrize("name", PRESETS)
    def test_what_is_stored_is_what_acts(self, name: str) -> None:
        """Settings of a preset make the same policy again, also without the preset."""
        stored = settings_of(PRESETS[name])

        assert policy_of(name, stored) == PRESETS[name]
        assert policy_of("default", stored) == PRESETS[name]

    def test_a_row_of_another_release_still_acts(self) -> None:
        """A field it lacks is its preset's, a field nobody knows here is passed over."""
        assert policy_of("seed000", {"cool_below": 0.2, "colour": "blue"}) == changed(
            find_preset("seed000"), {"cool_below": 0.2}
        )


class TestParseSetting:
    @pytest.mark.parametrize(
        ("written", "read"),
        [
            ("strength_days=20", ("strength_days", 20.0)),
            ("page_size_turns=3", ("page_size_turns", 3)),
            ("ttl_days=null", ("ttl_days", None)),
            ("forget=none", ("forget", "none")),
        ],
    )
    def test_values_are_read_by_the_kind_of_their_field(self, written: str, read: tuple[str, object]) -> None:
        """Numbers, words and null come as a person writes them."""
        assert parse_setting(written) == read

    @pytest.mark.parametrize(
        "written",
        ["colour=blue", "strength_days", "page_size_turns=2.5", "strength_days=soon", "strength_days=nan",
         "strength_days=null", "strength_days=inf"],
    )  # fmt: skip
    def test_nonsense_is_refused(self, written: str) -> None:
        """An unknown name, a missing value and a value of another kind each end in a sentence."""
        with pytest.raises(InvalidPolicyError):
            parse_setting(written)


class TestChange:
    def test_joint_rules_hold_after_a_change(self) -> None:
        """What is right alone and wrong together is refused, by name."""
        with pytest.raises(InvalidPolicyError, match="hot_capacity_turns"):
            changed(DEFAULT, {"page_size_turns": 20})

    def test_differences_name_both_values(self) -> None:
        """A change can be read off."""
        assert differences(DEFAULT, changed(DEFAULT, {"ttl_days": 9})) == {"ttl_days": (None, 9.0)}
