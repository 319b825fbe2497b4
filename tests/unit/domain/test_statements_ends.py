"""What is over ends the known thing it names, in whatever words; a doubt or the end of somebody else's does not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memoryos_pipeline.domain.knowledge import Candidate, Decision, Neighbour
from memoryos_pipeline.domain.statements_verdicts import bears_on, decide

SAID_AT = datetime(2025, 3, 3, tzinfo=UTC)


def candidate(text: str, lang: str) -> Candidate:
    """A statement that sets nothing by itself."""
    return Candidate(
        kind="fact", content=f"[2025-03-03] Sam: {text}", lang=lang, actor="Sam", source_seqs=(1,), turn_at=SAID_AT,
        importance=0.5,
    )  # fmt: skip


def known(slot: str, value: str, text: str) -> Neighbour:
    """Something held to be true for a month."""
    return Neighbour(
        UUID(int=1), UUID(int=1), 1, "fact", f"[2025-02-01] Sam: {text}", "Sam", f"sam|{slot}", value,
        SAID_AT - timedelta(days=30), None, 0.2,
    )  # fmt: skip


CELLO = {"en": "cello", "ja": "チェロ", "ko": "첼로", "zh": "大提琴"}
OVER = [
    ("en", "I'm through with the cello, honestly."), ("en", "That was it for me, no more cello."),
    ("ja", "チェロはもう終わりにする。"), ("ja", "とうとうチェロを手放しました。"),
    ("ko", "첼로는 이제 끝이야."), ("ko", "나 첼로 접었어."),
    ("zh", "我和大提琴说拜拜了。"), ("zh", "大提琴我不碰了。"),
]  # fmt: skip
NOT_OVER = [
    ("en", "I might quit the cello one day."), ("en", "I'll never give up the cello."),
    ("en", "My niece quit the cello."), ("en", "The cello sounded great tonight."),
    ("ja", "チェロをやめるかもしれない。"), ("ja", "姪がチェロをやめました。"),
    ("ko", "첼로를 그만둘까 고민이야."), ("ko", "조카가 첼로를 그만뒀어."),
    ("zh", "我在考虑要不要放弃大提琴。"), ("zh", "我侄女放弃大提琴了。"),
]  # fmt: skip


class TestDecide:
    @pytest.mark.parametrize(("lang", "text"), OVER)
    def test_what_is_over_closes_what_is_known(self, lang: str, text: str) -> None:
        """The thing is named, and something about it is at an end."""
        old = known(f"habit|{CELLO[lang]}", "does", "...")
        verdict = decide(candidate(text, lang), [old])
        assert (verdict.decision, verdict.neighbour_id) == (Decision.CLOSE, old.knowledge_id)

    @pytest.mark.parametrize(("lang", "text"), NOT_OVER)
    def test_a_doubt_or_somebody_elses_end_closes_nothing(self, lang: str, text: str) -> None:
        """Neither what may come, nor what a niece gave up, nor what was only heard."""
        verdict = decide(candidate(text, lang), [known(f"habit|{CELLO[lang]}", "does", "...")])
        assert verdict.decision is Decision.ADD

    @pytest.mark.parametrize(("lang", "text"), OVER)
    def test_told_late_it_is_history(self, lang: str, text: str) -> None:
        """What was so before it ended does not come back when it is handed in afterwards."""
        ended = replace(known("", "", text), slot=None, slot_value=None, turn_at=SAID_AT + timedelta(days=9))
        late = replace(candidate("...", lang), slot=f"sam|habit|{CELLO[lang]}", slot_value="does")
        verdict = decide(late, [ended])
        assert bears_on(late, ended)
        assert (verdict.decision, verdict.arrived_late) == (Decision.CLOSE, True)

    def test_what_has_ended_already_ends_no_more(self) -> None:
        """Only what holds can be over."""
        verdict = decide(candidate("No more cello for me.", "en"), [known("habit|cello", "quit", "I quit the cello.")])
        assert verdict.decision is Decision.ADD
