"""Distilling finds what a page says, or says that there is nothing, and never takes the model's word for more."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memoryos_pipeline.domain.errors import FencedError, InvalidOutputError
from memoryos_pipeline.domain.knowledge import Candidate, Distillate, TraitDelta
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.stages.distill_page import distill_page
from memoryos_pipeline.store.candidates import candidate_of, candidate_payload
from tests.conftest import Stack
from tests.integration.stages.cold import START, Cold

CANDIDATE = Candidate(
    kind="fact", content="Maya lives in Osaka", lang="en", actor="Maya", source_seqs=(1,), turn_at=START,
    importance=0.5,
)  # fmt: skip


@pytest.fixture
def cold(stack: Stack) -> Cold:
    """A scope whose past a test writes."""
    return Cold(stack)


def _distill(cold: Cold) -> None:
    for lease in cold.claim(WorkKind.DISTILL):
        distill_page(cold.parts, lease)


class TestDistill:
    def test_a_page_becomes_candidates_in_its_place_in_line(self, cold: Cold) -> None:
        """Candidates carry the page's ordinal, the page says who distilled it and how much, merging is owed."""
        page = cold.page("residence=Osaka", "- hm", "I play the cello")
        _distill(cold)
        assert cold.rows("select page_id, ordinal, extract_ordinal from memoryos.candidate order by 2") == [
            (page, 0, 1), (page, 1, 1),
        ]  # fmt: skip
        assert cold.rows("select extracted_by, knowledge_count, tier from memoryos.page") == [("scripted/1", 2, "warm")]
        assert cold.rows("select kind, amount, subject_id from memoryos.event") == [("page_distilled", 2.0, page)]
        assert len(cold.claim(WorkKind.MERGE)) == 1

    def test_recalled_memories_are_not_learned_again(self, cold: Cold) -> None:
        """What recall injected is not shown to the model, so repetition of memories creates none."""
        cold.page("recalled> Maya is a surgeon", "I play the cello")
        _distill(cold)
        assert [turn.content for turn in cold.model.distilled[0].turns] == ["I play the cello"]

    def test_a_page_of_nothing_but_recall_needs_no_model(self, cold: Cold) -> None:
        """An explicit nothing, without a call."""
        cold.page("recalled> Maya is a surgeon")
        _distill(cold)
        assert cold.model.distilled == []
        assert cold.rows("select knowledge_count, extracted_by from memoryos.page") == [(0, "scripted/1")]

    def test_the_page_before_is_shown_and_nothing_that_changes(self, cold: Cold) -> None:
        """The model sees the turns before, and no summary that may be written later."""
        cold.page("I play the cello", day=0)
        cold.page("it is heavy", day=1)
        _distill(cold)
        second = cold.model.distilled[1]
        assert [turn.content for turn in second.previous_turns] == ["I play the cello"]

    def test_a_page_is_distilled_once_an_extractor(self, cold: Cold) -> None:
        """Asked again, nothing is done; asked after the model changed, the page is read again."""
        cold.page("residence=Osaka")
        cold.work()
        again = "update memoryos.work set state = 'ready' where kind = 'distill' returning 1"
        cold.rows(again)
        cold.work()
        assert len(cold.model.distilled) == 1
        cold.model.name = "scripted/2"
        cold.rows(again)
        cold.work()
        assert len(cold.model.distilled) == 2
        assert cold.live() == ["Maya: the residence is Osaka"]

    def test_a_late_worker_leaves_no_candidates(self, cold: Cold) -> None:
        """A distillation whose lease was lost writes nothing."""
        cold.page("residence=Osaka")
        [late] = cold.claim(WorkKind.DISTILL, lease_seconds=0)
        cold.claim(WorkKind.DISTILL)
        with pytest.raises(FencedError):
            distill_page(cold.parts, late)
        assert cold.rows("select count(*) from memoryos.candidate") == [(0,)]

    def test_a_correction_names_the_turn_that_was_wrong(self, cold: Cold) -> None:
        """The last turn of the assistant before it that said the wrong word, of this page or the one before."""
        cold.page("assistant> So Nagoya it is", "hm", "assistant> Nagoya is nice", day=0)
        cold.page("assistant> Osaka too", "not Nagoya, Osaka", day=1)
        wrong = {"wrong": "nagoya", "right": "osaka"}
        correction = replace(CANDIDATE, kind="correction", source_seqs=(5,), attributes=wrong)
        first, second = sorted(cold.claim(WorkKind.DISTILL), key=lambda lease: lease.work_id)
        distill_page(cold.parts, first)
        _answer(cold, Distillate((correction,), (), "scripted/1"))
        distill_page(cold.parts, second)
        query = "select payload -> 'attributes' -> 'corrected_seqs' from memoryos.candidate where extract_ordinal = 2"
        assert cold.rows(query) == [([3],)]


class TestArchive:
    def test_a_cold_page_is_archived_with_its_distillation(self, cold: Cold) -> None:
        """Cause cooled and still cold: the page leaves warm search in the same transaction; its turns stay."""
        cold.at(0)
        page = cold.page("residence=Osaka", cause="cooled")
        _index(cold, page)
        cold.at(30)
        _distill(cold)
        assert cold.rows("select tier, archived_at is not null from memoryos.page") == [("archived", True)]
        kinds = "select distinct owner_kind from memoryos.posting_length order by 1"
        assert cold.rows(kinds) == [("turn",)]
        assert cold.rows("select kind from memoryos.event order by event_id") == [
            ("page_distilled",), ("page_archived",),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("cause", "column"),
        [
            ("cooled", "heat_at = memoryos.now()"),
            ("heated", "version = version"),
            ("cooled", "pinned_at = memoryos.now()"),
        ],
    )
    def test_a_page_that_is_read_hot_or_pinned_stays(self, cold: Cold, cause: str, column: str) -> None:
        """Warmed up meanwhile, distilled because it was hot, or pinned: distilled and still warm."""
        cold.at(0)
        cold.page("residence=Osaka", cause=cause)
        cold.at(30)
        cold.rows(f"update memoryos.page set {column} returning 1")
        _distill(cold)
        assert cold.rows("select tier, extracted_at is not null from memoryos.page") == [("warm", True)]


class TestRefuse:
    @pytest.mark.parametrize(
        "change",
        [
            {"source_seqs": ()},
            {"source_seqs": (1, 99)},
            {"content": " "},
            {"content": "a NUL \x00 inside"},
            {"content": "half a surrogate \ud800"},
            {"importance": 1.5},
            {"kind": "gossip"},
            {"event_at": datetime(2026, 1, 1)},  # noqa: DTZ001 - the fault is the point
        ],
    )
    def test_an_answer_that_cannot_be_trusted_is_refused_whole(self, cold: Cold, change: dict[str, object]) -> None:
        """No citation, a turn of elsewhere, text that cannot be stored: nothing of the answer is kept."""
        bad = replace(CANDIDATE, **change)  # type: ignore[arg-type]
        cold.page("residence=Osaka")
        _answer(cold, Distillate((CANDIDATE, bad), (), "scripted/1"))
        with pytest.raises(InvalidOutputError):
            _distill(cold)
        assert cold.rows("select count(*) from memoryos.candidate") == [(0,)]
        assert cold.rows("select extracted_at from memoryos.page") == [(None,)]

    @pytest.mark.parametrize("evidence", [(), (1,), (-1,)])
    def test_a_trait_without_evidence_is_refused(self, cold: Cold, evidence: tuple[int, ...]) -> None:
        """A profile change must stand on a candidate of the page."""
        cold.page("residence=Osaka")
        delta = TraitDelta("Maya", "openness", "high", 0.5, evidence)
        _answer(cold, Distillate((CANDIDATE,), (delta,), "scripted/1"))
        with pytest.raises(InvalidOutputError):
            _distill(cold)


class TestPayload:
    def test_a_candidate_survives_being_stored(self) -> None:
        """Every field comes back as it was, offsets and scripts included."""
        full = replace(
            CANDIDATE, content="京都に引っ越した。부산. 北京。", slot="maya|residence", slot_value="京都", negated=True,
            keywords=("京都", "引っ越し"), entities=(("京都", "place"),), event_at=datetime(2025, 12, 31, tzinfo=UTC),
            event_precision="day", attributes={"corrected_seqs": [2]}, turn_at=START + timedelta(minutes=1),
        )  # fmt: skip
        assert candidate_of(candidate_payload(full)) == full


def _answer(cold: Cold, distillate: Distillate) -> None:
    cold.model.distill = lambda *_, **__: distillate  # type: ignore[method-assign]


def _index(cold: Cold, page: object) -> None:
    cold.rows(
        """
        insert into memoryos.posting_length (tenant_id, scope_id, owner_kind, owner_id, terms)
        select tenant_id, scope_id, 'page', page_id, 3 from memoryos.page where page_id = :page
        union all select tenant_id, scope_id, 'turn', turn_id, 3 from memoryos.turn returning 1""",
        page=page,
    )
