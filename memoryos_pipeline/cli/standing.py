"""How a statement stands, in a sentence: why it holds, what ends it, why it is forgotten, how it comes back."""

from typing import Any


def standing(row: dict[str, Any]) -> str:
    """Say how a statement stands; `row` is one as the API tells it."""
    if row["status"] == "forgotten":
        back = f"`memoryos restore {row['knowledge_id']}` brings it back until {_day(row['purge_at'])}"
        return f"Forgotten on {_day(row['forgotten_at'])}, {_cause(row)}; {back}."
    if row["status"] != "active":
        reason = f" ({row['reason']})" if row["reason"] else ""
        return f"It held from {_day(row['valid_from'])} to {_day(row['valid_to'])}, and is history now{reason}."
    if row["pinned_at"]:
        return f"It is held to be true since {_day(row['valid_from'])}, and pinned: nothing but a person takes it."
    ends = f"untouched it is forgotten on {_day(row['forget_at'])}" if row["forget_at"] else "it does not fade"
    return f"It is held to be true since {_day(row['valid_from'])}, with weight {row['weight']:.2f}; {ends}."


def _cause(row: dict[str, Any]) -> str:
    if row["superseded_by"]:
        return "with the statement that had replaced it"
    if row["forget_at"] and row["forget_at"] <= row["forgotten_at"]:
        return "because its weight had fallen too low or there was no room (`memoryos policy show`)"
    return "by a person's decision, or because it was kept only for a time (`ttl_days` of the policy)"


def _day(moment: str | None) -> str:
    return moment[:10] if moment else "now"
