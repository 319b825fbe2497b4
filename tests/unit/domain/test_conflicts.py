"""Conflict rules: one live truth, nothing lost, the order of speech over the order of arrival."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from uuid import UUID

import pytest

from memoryos_pipeline.domain.conflicts import plan_merge, retire_cap, settle_restored
from memoryos_pipeline.domain.errors import InvalidOutputError
from memoryos_pipeline.domain.ids import derive_id
from memoryos_pipeline.domain.knowledge import Candidate, Decision, KnowledgeKind, Verdict
from memoryos_pipeline.domain.policies import DEFAULT
from memoryos_pipeline.domain.truths import Claim, Plan, Scene, Truth, content_key

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SLOT = "maya|residence"


def said(day: float) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + day * DAY


def claim(
    content: str, *, day: float, slot: str | None = None, kind: KnowledgeKind = "fact", ordinal: int = 0,
    offered: tuple[UUID, ...] = (), importance: float = 0.5,
) -> Claim:  # fmt: skip
    candidate = Candidate(
        kind=kind, content=content, lang="en", actor="Maya", source_seqs=(1,), turn_at=said(day),
        importance=importance, slot=slot,
    )  # fmt: skip
    return Claim(ordinal, derive_id("test", content, day, ordinal), candidate, frozenset(offered))


class Book:
    """A scope's rows, with plans applied to them."""

    def __init__(self) -> None:
        self.rows: dict[UUID, Truth] = {}

    def apply(self, claims: list[Claim], verdicts: list[Verdict]) -> Plan:
        scene = Scene(tuple(self.rows.values()), len(self.live), NOW, DEFAULT)
        plan = plan_merge(claims, verdicts, scene)
        for row in [row for _, row in plan.added] + list(plan.changed):
            self.rows[row.knowledge_id] = row
        return plan

    def tell(self, content: str, *, day: float, verdict: Verdict | None = None, **more: object) -> Plan:
        offered = tuple(row.knowledge_id for row in self.live)
        one = claim(content, day=day, offered=offered, **more)  # type: ignore[arg-type]
        return self.apply([one], [verdict or Verdict(Decision.ADD)])

    @property
    def live(self) -> list[Truth]:
        return [row for row in self.rows.values() if row.is_live]

    @property
    def current(self) -> set[bytes]:
        return {row.content_key for row in self.live}

    def row(self, content: str) -> Truth:
        return next(row for row in self.rows.values() if row.content_key == content_key(content))


def _about(decision: Decision, row: Truth, *, late: bool = False) -> Verdict:
    return Verdict(decision, row.knowledge_id, arrived_late=late)


class TestUpdate:
    def test_a_change_of_mind_leaves_one_truth_and_a_history(self) -> None:
        """likes -> dislikes: one live row, the old one ends when the new one was said and names it."""
        book = Book()
        book.tell("Maya loves spicy food", day=0)
        old = book.live[0]
        book.tell("Maya cannot stand spicy food", day=7, verdict=_about(Decision.UPDATE, old))

        new, old = book.live[0], book.row("Maya loves spicy food")
        assert book.current == {content_key("Maya cannot stand spicy food")}
        assert (old.status, old.valid_to, old.superseded_by) == ("superseded", said(7), new.knowledge_id)
        assert (new.lineage_id, new.version) == (old.lineage_id, 2)

    def test_a_successor_keeps_pin_importance_and_strength(self) -> None:
        """What a row had earned is not lost by a new wording."""
        book = Book()
        book.tell("Maya is allergic to penicillin", day=0, importance=0.95)
        old = book.live[0]
        book.rows[old.knowledge_id] = replace(old, pinned_at=NOW, strength_days=300.0)
        book.tell("Maya is allergic to penicillin and aspirin", day=1, verdict=_about(Decision.UPDATE, old))
        new = book.live[0]
        assert (new.pinned_at, new.importance, new.strength_days) == (NOW, 0.95, 300.0)

    def test_the_slot_decides_when_the_model_overlooks_it(self) -> None:
        """A second value of an occupied slot replaces the first even when the verdict says ADD."""
        book = Book()
        book.tell("Maya lives in Fukuoka", day=0, slot=SLOT)
        book.tell("Maya lives in Osaka", day=1, slot=SLOT)
        assert book.current == {content_key("Maya lives in Osaka")}

    def test_a_page_may_contradict_itself(self) -> None:
        """Two values on one page: the later turn wins although both were shown the same neighbours."""
        book = Book()
        book.tell("Maya lives in Fukuoka", day=0, slot=SLOT)
        old = book.live[0].knowledge_id
        first = claim("Maya lives in Osaka", day=1, slot=SLOT, ordinal=1, offered=(old,))
        second = claim("Maya lives in Kyoto", day=2, slot=SLOT, ordinal=0, offered=(old,))
        update = Verdict(Decision.UPDATE, old)
        book.apply([second, first], [update, update])

        assert book.current == {content_key("Maya lives in Kyoto")}
        assert sorted(row.version for row in book.rows.values()) == [1, 2, 3]


class TestClose:
    def test_closing_never_drops_the_new_statement(self) -> None:
        """CLOSE ends the old row and adds the new one in a lineage of its own."""
        book = Book()
        book.tell("Maya has a dog", day=0)
        old = book.live[0]
        book.tell("Maya's dog died", day=3, verdict=_about(Decision.CLOSE, old))

        new, old = book.live[0], book.rows[old.knowledge_id]
        assert (old.status, old.valid_to, old.superseded_by) == ("closed", said(3), new.knowledge_id)
        assert book.current == {content_key("Maya's dog died")}
        assert new.lineage_id != old.lineage_id

    def test_denying_a_value_of_a_slot_stays_in_its_history(self) -> None:
        """CLOSE of the same slot: the denial is the next version of the lineage, so the history reads on."""
        book = Book()
        book.tell("Maya loves tea", day=0, slot="maya|tea")
        book.tell("Maya hates tea", day=1, slot="maya|tea", verdict=_about(Decision.CLOSE, book.live[0]))
        old, new = book.row("Maya loves tea"), book.row("Maya hates tea")
        assert (old.status, new.lineage_id, new.version) == ("closed", old.lineage_id, 2)

    def test_a_repeated_statement_still_closes(self) -> None:
        """When the new truth is stored already, repeating it retires what it contradicts and adds no copy."""
        book = Book()
        book.tell("Maya hates tea", day=1)
        book.tell("Maya loves tea", day=0)
        plan = book.tell("Maya hates tea", day=2, verdict=_about(Decision.CLOSE, book.row("Maya loves tea")))
        assert book.current == {content_key("Maya hates tea")}
        assert plan.added == ()


class TestDenyAll:
    def test_having_none_ends_each_of_a_group(self) -> None:
        """ "I have no allergies" ends every known allergy, nothing else, and is the one truth of the group."""
        book = Book()
        book.tell("allergic to penicillin", day=0, slot="maya|allergy|penicillin")
        book.tell("allergic to cats", day=1, slot="maya|allergy|cats")
        book.tell("likes cats", day=1, slot="maya|attitude|cats")
        book.tell("no allergies", day=2, slot="maya|allergy|none")
        assert book.current == {content_key("likes cats"), content_key("no allergies")}

    def test_one_of_a_group_ends_having_none(self) -> None:
        """An allergy said after "no allergies" ends it; denying one allergy does not."""
        book = Book()
        book.tell("no allergies", day=0, slot="maya|allergy|none")
        denial = claim("not allergic to nuts", day=1, slot="maya|allergy|nuts")
        denial = replace(denial, candidate=replace(denial.candidate, negated=True))
        book.apply([denial], [Verdict(Decision.ADD)])
        assert content_key("no allergies") in book.current
        book.tell("allergic to cats", day=2, slot="maya|allergy|cats")
        assert content_key("no allergies") not in book.current

    def test_a_slot_of_two_parts_has_no_group(self) -> None:
        """A name of "none" as the value of a plain slot denies nothing else."""
        book = Book()
        book.tell("lives in Osaka", day=0, slot="maya|residence")
        book.tell("has none", day=1, slot="maya|none")
        assert len(book.live) == 2


class TestArriveLate:
    def test_an_old_import_does_not_win(self) -> None:
        """Osaka is known; a session of two years ago says Fukuoka: it is history, and retires nothing."""
        book = Book()
        book.tell("Maya lives in Osaka", day=700, slot=SLOT)
        new = book.live[0]
        book.tell("Maya lives in Fukuoka", day=0, slot=SLOT, verdict=_about(Decision.UPDATE, new))

        late = book.row("Maya lives in Fukuoka")
        assert book.current == {content_key("Maya lives in Osaka")}
        assert (late.status, late.valid_from, late.valid_to) == ("superseded", said(0), said(700))
        assert late.superseded_by == new.knowledge_id
        assert late.lineage_id == new.lineage_id

    def test_a_late_close_is_history_too(self) -> None:
        """A CLOSE from the past closes itself, not the newer truth."""
        book = Book()
        book.tell("Maya drinks coffee again", day=9)
        new = book.live[0]
        book.tell("Maya gave up coffee", day=2, verdict=_about(Decision.CLOSE, new))
        assert book.current == {content_key("Maya drinks coffee again")}
        assert book.row("Maya gave up coffee").status == "closed"

    def test_a_late_version_takes_its_place_in_the_history(self) -> None:
        """Between two known versions: the earlier one ends where the late one begins."""
        book = Book()
        book.tell("Maya lives in Fukuoka", day=0, slot=SLOT)
        book.tell("Maya lives in Osaka", day=10, slot=SLOT)
        book.tell("Maya lives in Kobe", day=4, slot=SLOT)
        spans = sorted((row.valid_from, row.valid_to) for row in book.rows.values() if not row.is_live)
        assert spans == [(said(0), said(4)), (said(4), said(10))]
        assert book.row("Maya lives in Fukuoka").superseded_by == book.row("Maya lives in Kobe").knowledge_id

    def test_the_same_old_import_adds_history_once(self) -> None:
        """Importing the old session again (under another name) is one more source, not one more version."""
        book = Book()
        book.tell("Maya lives in Osaka", day=700, slot=SLOT)
        book.tell("Maya lives in Fukuoka", day=0, slot=SLOT)
        plan = book.tell("Maya lives in Fukuoka", day=0, slot=SLOT, ordinal=5)
        assert plan.added == ()
        assert plan.supported == ((book.row("Maya lives in Fukuoka").knowledge_id, 5),)
        assert plan.reinforced == ()

    def test_a_model_may_say_that_only_the_event_is_old(self) -> None:
        """`arrived_late` on something said today: history from its event to the newer truth."""
        book = Book()
        book.tell("Maya lives in Osaka", day=5, slot=SLOT)
        verdict = _about(Decision.UPDATE, book.live[0], late=True)
        book.tell("Two years ago Maya lived in Fukuoka", day=6, slot=SLOT, verdict=verdict)
        late = book.row("Two years ago Maya lived in Fukuoka")
        assert (late.status, late.valid_from, late.valid_to) == ("superseded", said(5), said(5))

    def test_every_order_of_arrival_gives_the_same_truth(self) -> None:
        """Five statements about one slot, in all 120 orders: always the one said last is live."""
        told = [("Fukuoka", 0), ("Osaka", 1), ("Fukuoka", 2), ("Kobe", 3), ("Osaka", 4)]
        for order in permutations(told):
            book = Book()
            for city, day in order:
                book.tell(f"Maya lives in {city}", day=day, slot=SLOT)
            assert book.current == {content_key("Maya lives in Osaka")}, order


class TestSupport:
    def test_a_repeat_is_a_source_and_not_a_copy(self) -> None:
        """The same statement again, in other case and spacing, adds a source and no row."""
        book = Book()
        book.tell("Maya plays the cello", day=0)
        plan = book.tell("maya  plays the CELLO", day=1, ordinal=3)
        assert plan.added == ()
        assert [ordinal for _, ordinal in plan.supported] == [3]

    def test_twenty_repeats_in_an_hour_strengthen_once(self) -> None:
        """Repetition of one session does not pump a memory up."""
        book = Book()
        book.tell("Maya plays the cello", day=0)
        row = book.live[0]
        book.rows[row.knowledge_id] = replace(row, last_reinforced_at=NOW - 3 * DAY)
        plans = [book.tell("Maya plays the cello", day=day) for day in range(1, 21)]
        assert [len(plan.reinforced) for plan in plans] == [1] + [0] * 19
        assert book.live[0].strength_days == DEFAULT.strength_days * DEFAULT.reinforce_factor

    def test_the_assistants_echo_gives_no_support(self) -> None:
        """What the assistant repeats of a user's statement is a source, not a reinforcement."""
        book = Book()
        book.tell("Maya plays the cello", day=0)
        row = book.live[0]
        book.rows[row.knowledge_id] = replace(row, last_reinforced_at=NOW - 3 * DAY)
        noop = _about(Decision.NOOP, row)
        plan = book.tell("You play the cello", day=1, kind="assistant_kb", verdict=noop)
        assert plan.reinforced == ()

    def test_an_earlier_source_dates_the_statement_back(self) -> None:
        """Said on day 5, later found said on day 2: true since day 2, and the predecessor ends there."""
        book = Book()
        book.tell("Maya lives in Fukuoka", day=0, slot=SLOT)
        book.tell("Maya lives in Osaka", day=5, slot=SLOT)
        book.tell("Maya lives in Osaka", day=2, slot=SLOT)
        assert book.row("Maya lives in Osaka").valid_from == said(2)
        assert book.row("Maya lives in Fukuoka").valid_to == said(2)


class TestBound:
    def test_knowledge_that_was_not_shown_cannot_be_named(self) -> None:
        """An invented id rejects the whole answer; so does a missing one, or a missing verdict."""
        book = Book()
        book.tell("Maya has a dog", day=0)
        stranger = Verdict(Decision.UPDATE, UUID(int=99))
        for verdicts in ([stranger], [Verdict(Decision.NOOP)], [Verdict(Decision.CLOSE)], []):
            with pytest.raises(InvalidOutputError):
                book.apply([claim("Maya has a cat", day=1)], verdicts)
        assert book.current == {content_key("Maya has a dog")}

    def test_a_page_retires_only_so_much(self) -> None:
        """Of eight UPDATEs in a small scope five are applied; the others stand beside, and it is recorded."""
        book = Book()
        for number in range(8):
            book.tell(f"statement {number}", day=0)
        rows = list(book.live)
        claims = [claim(f"change {n}", day=1, ordinal=n, offered=(row.knowledge_id,)) for n, row in enumerate(rows)]
        plan = book.apply(claims, [_about(Decision.UPDATE, row) for row in rows])

        decisions = [ruling.decision for ruling in plan.rulings]
        assert decisions == [Decision.UPDATE] * 5 + [Decision.COEXIST] * 3
        assert all("damage cap" in ruling.reason for ruling in plan.rulings[5:])
        assert len(book.live) == 5 + 3 + 3

    def test_the_cap_grows_with_the_scope_and_ends(self) -> None:
        """5 % of the live rows, at least 5, at most 25."""
        assert [retire_cap(rows) for rows in (0, 100, 101, 300, 10_000)] == [5, 5, 6, 15, 25]

    def test_the_assistant_retires_nothing_a_user_said(self) -> None:
        """An assistant's statement against a user's stands beside it, even in the same slot."""
        book = Book()
        book.tell("Maya lives in Osaka", day=0, slot=SLOT)
        book.tell("Maya lives in Nagoya", day=1, slot=SLOT, kind="assistant_kb")
        assert book.row("Maya lives in Osaka").is_live
        assert book.row("Maya lives in Nagoya").slot is None

    def test_coexisting_statements_share_no_slot(self) -> None:
        """Two Minas: both facts stay, the one said last answers for the slot, so that no later one retires both."""
        book = Book()
        book.tell("Mina (boss) hates coffee", day=0, slot="mina|coffee")
        verdict = _about(Decision.COEXIST, book.live[0])
        book.tell("Mina (sister) loves coffee", day=1, slot="mina|coffee", verdict=verdict)
        assert len(book.live) == 2
        assert book.row("Mina (boss) hates coffee").slot is None
        assert book.row("Mina (sister) loves coffee").slot == "mina|coffee"

    def test_what_was_said_earlier_does_not_take_the_slot(self) -> None:
        """COEXIST with something newer in the slot: the newer one keeps it."""
        book = Book()
        book.tell("Mina (boss) hates coffee", day=5, slot="mina|coffee")
        verdict = _about(Decision.COEXIST, book.live[0])
        book.tell("Mina (sister) loves coffee", day=1, slot="mina|coffee", verdict=verdict)
        assert book.row("Mina (boss) hates coffee").slot == "mina|coffee"


class TestRestore:
    def test_what_was_said_last_is_live_after_a_restore(self) -> None:
        """A restored row yields to newer truth and retires older truth."""
        book = Book()
        book.tell("Maya lives in Osaka", day=5, slot=SLOT)
        osaka = book.live[0]
        book.rows.clear()
        book.tell("Maya lives in Kobe", day=7, slot=SLOT)
        kobe = book.live[0]

        yielded = settle_restored(osaka, [kobe])
        assert [(row.status, row.superseded_by) for row in yielded] == [("superseded", kobe.knowledge_id)]
        won = {row.knowledge_id: row.status for row in settle_restored(kobe, [osaka])}
        assert won == {kobe.knowledge_id: "active", osaka.knowledge_id: "superseded"}

    def test_without_a_rival_a_row_is_live_again(self) -> None:
        """Nothing in the way: active, open-ended."""
        book = Book()
        book.tell("Maya lives in Osaka", day=5)
        assert settle_restored(book.live[0], []) == [book.live[0]]
