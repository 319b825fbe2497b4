"""Every state of a statement is a sentence that says why, and what can be done."""

from typing import Any

import pytest

from memoryos_pipeline.cli.standing import standing

ROW: dict[str, Any] = {
    "knowledge_id": "k1", "status": "active", "weight": 0.5, "reason": None, "superseded_by": None, "pinned_at": None,
    "valid_from": "2026-05-04T18:02:00Z", "valid_to": None, "forget_at": "2026-09-01T00:00:00Z", "forgotten_at": None,
    "purge_at": None,
}  # fmt: skip
GONE = {"status": "forgotten", "forgotten_at": "2026-09-02T00:00:00Z", "purge_at": "2026-10-02T00:00:00Z"}


class TestStanding:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({}, ("weight 0.50", "forgotten on 2026-09-01")),
            ({"forget_at": None}, ("does not fade",)),
            ({"pinned_at": "2026-06-01T00:00:00Z"}, ("pinned",)),
            ({"status": "closed", "valid_to": "2026-06-01T00:00:00Z", "reason": "moved"}, ("2026-06-01", "(moved)")),
            (GONE, ("weight had fallen", "memoryos restore k1", "until 2026-10-02")),
            ({**GONE, "forget_at": None}, ("person's decision",)),
            ({**GONE, "forget_at": "2027-01-01T00:00:00Z"}, ("person's decision",)),
            ({**GONE, "superseded_by": "k2"}, ("replaced it",)),
        ],
    )
    def test_says_why_and_what_then(self, changes: dict[str, Any], words: tuple[str, ...]) -> None:
        """Held, pinned, history, faded, taken by a person, gone with its successor: each is told apart."""
        assert all(word in standing({**ROW, **changes}) for word in words)
