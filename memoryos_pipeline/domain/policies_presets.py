"""Presets: one policy for each published design, and one of all of them; settings change a preset. Pure."""

import math
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any, get_args, get_type_hints

from memoryos_pipeline.domain.errors import MemoryosError
from memoryos_pipeline.domain.policies import DEFAULT, Policy

NO_FORGETTING: dict[str, Any] = {"forget": "none"}
SEED000 = Policy(
    heat="ema_tick", tick="query", distill_when="cooled", min_warm_age_hours=0.0, reinforce_on="retrieved",
    forget="exp_rate", reinforce_factor=1.0, importance_floor=None, resolution="merge", graph="off",
    evolution_neighbours=0, links_per_knowledge=0, ranking="seed000",
)  # fmt: skip
BAI_LAB = Policy(
    hot="fifo_one", hot_capacity_turns=20, page_unit="exchange", distill_when="heated", segment_recency="paper",
    reset_on_extract="L", evict="lowest_heat", knowledge_capacity=100, reinforce_on="retrieved", resolution="append",
    graph="off", evolution_neighbours=0, links_per_knowledge=0, ranking="bai_lab", **NO_FORGETTING,
)  # fmt: skip
A_MEM = Policy(
    hot="fifo_one", hot_capacity_turns=1, page_size_turns=1, distill_when="sealed", resolution="append",
    neighbours=5, graph="off", ranking="a_mem", **NO_FORGETTING,
)  # fmt: skip
MEMORYBANK = Policy(
    hot="fifo_one", hot_capacity_turns=2, page_unit="exchange", distill_when="sealed", strength_days=1.0,
    reinforce_factor=1.0, reinforce_step_days=1.0, strength_cap_days=36_500.0, reinforce_on="retrieved",
    importance_floor=None, resolution="append", graph="off", evolution_neighbours=0, links_per_knowledge=0,
    rollups="daily", ranking="memorybank",
)  # fmt: skip
MEM0 = Policy(
    hot="fifo_one", hot_capacity_turns=10, page_unit="exchange", distill_when="sealed", graph="off",
    evolution_neighbours=0, links_per_knowledge=0, ranking="mem0", **NO_FORGETTING,
)  # fmt: skip

PRESETS: dict[str, Policy] = {
    "default": DEFAULT,
    "seed000": SEED000,
    "bai_lab": BAI_LAB,
    "a_mem": A_MEM,
    "memorybank": MEMORYBANK,
    "mem0": MEM0,
    "mem0g": replace(MEM0, graph="triples"),
}

CLAIMS: dict[str, frozenset[str]] = {
    "default": frozenset(
        {"sealed", "cooled", "heated", "extracted", "closed", "linked", "annotated", "forgotten", "restored"}
    ),
    "seed000": frozenset({"sealed", "cooled", "extracted", "closed", "forgotten", "restored"}),
    "bai_lab": frozenset({"sealed", "heated", "extracted"}),
    "a_mem": frozenset({"sealed", "extracted", "linked", "annotated"}),
    "memorybank": frozenset({"sealed", "extracted", "forgotten", "restored"}),
    "mem0": frozenset({"sealed", "extracted", "closed"}),
    "mem0g": frozenset({"sealed", "extracted", "closed"}),
}
"""What each design does to a memory. What a preset does not claim, its policies leave undone."""


class InvalidPolicyError(MemoryosError):
    """A policy names something that does not exist, or a value out of its range."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


_HINTS = get_type_hints(Policy)
_NAMES = frozenset(each.name for each in fields(Policy))


def find_preset(name: str) -> Policy:
    """Return a preset. Raises InvalidPolicyError naming those there are."""
    if name not in PRESETS:
        raise InvalidPolicyError("preset", f"there is no preset {name!r}; there are: {', '.join(PRESETS)}")
    return PRESETS[name]


def settings_of(policy: Policy) -> dict[str, Any]:
    """Return every field of a policy, as it is stored: what acted is then readable without this code."""
    return asdict(policy)


def policy_of(preset: str, settings: Mapping[str, Any]) -> Policy:
    """Return the policy a stored row stands for: its settings, and its preset for what they do not name.

    Names this code does not know are passed over: a row of a newer release still acts. Raises InvalidPolicyError.
    """
    known = {name: value for name, value in settings.items() if name in _NAMES}
    return changed(find_preset(preset), known)


def changed(policy: Policy, settings: Mapping[str, Any]) -> Policy:
    """Return the policy with these fields changed. Raises InvalidPolicyError naming the first that is wrong."""
    values = {name: _value(name, value) for name, value in settings.items()}
    try:
        return replace(policy, **values)
    except ValueError as error:
        name, _, problem = str(error).partition(" ")
        raise InvalidPolicyError(name, problem) from None


def parse_setting(written: str) -> tuple[str, Any]:
    """Read `name=value` as a person writes it; `null` is no value. Raises InvalidPolicyError."""
    name, separator, value = written.partition("=")
    if not separator:
        raise InvalidPolicyError(written, "write name=value")
    name = name.strip()
    return name, _value(name, None if value.strip() == "null" else value.strip())


def differences(before: Policy, after: Policy) -> dict[str, tuple[Any, Any]]:
    """Return the fields in which two policies differ, with both values."""
    old, new = asdict(before), asdict(after)
    return {name: (old[name], new[name]) for name in old if old[name] != new[name]}


def _value(name: str, value: Any) -> Any:
    if name not in _NAMES:
        raise InvalidPolicyError(name, "there is no such setting; `memoryos policy show` lists them")
    kinds = get_args(_HINTS[name]) or (_HINTS[name],)
    if value is None and type(None) in kinds:
        return None
    kind = next((each for each in (int, float) if each in kinds), str)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidPolicyError(name, f"must be a {_KIND_WORDS[kind]}")
    if kind is str:
        return str(value)
    try:
        number, exact = kind(value), float(value)
    except ValueError:
        raise InvalidPolicyError(name, f"must be a {_KIND_WORDS[kind]}, not {value!r}") from None
    except OverflowError:
        number, exact = 0, math.inf
    if number != exact or abs(exact) > _LARGEST:
        raise InvalidPolicyError(name, f"must be a {_KIND_WORDS[kind]} of at most {_LARGEST:.0e}")
    if 0 < abs(exact) < _SMALLEST:
        raise InvalidPolicyError(name, f"must be 0, or at least {_SMALLEST:.0e}")
    return number


_LARGEST, _SMALLEST = 1e9, 1e-9
"""Beyond these, no setting means anything, and arithmetic with it ends."""
_KIND_WORDS: dict[type, str] = {int: "whole number", float: "number", str: "word"}
