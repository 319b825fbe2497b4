"""Modes of resolution, notes that evolve, and relations that begin and end with the statements they stand on."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.knowledge import Decision, Verdict
from memoryos_pipeline.domain.policies import DEFAULT, Resolution
from memoryos_pipeline.domain.work import WorkKind
from memoryos_pipeline.models.anthropic import AnthropicModel
from memoryos_pipeline.models.anthropic_client import AnthropicClient
from memoryos_pipeline.models.extractive import ExtractiveModel
from memoryos_pipeline.models.hashing import HashingEmbedder
from memoryos_pipeline.readmodels.relations import Walk, walk_relations
from memoryos_pipeline.stages.embed import embed
from memoryos_pipeline.stages.undo_verdict import undo_verdict
from memoryos_pipeline.store.forgetting import purge_due
from tests.conftest import Stack
from tests.integration.stages.cold import Cold
from tests.stub_server.server import StubServer

STATUSES = "select status, count(distinct lineage_id), count(*) from memoryos.knowledge group by 1 order by 1"


def _close(candidate, near):  # type: ignore[no-untyped-def]
    """Close whatever is nearest."""
    return Verdict(Decision.CLOSE, near[0].knowledge_id, "no longer") if near else Verdict(Decision.ADD)


class TestMode:
    @pytest.mark.parametrize(
        ("mode", "held", "asked"),
        [
            ("ops", [("active", 1, 1), ("closed", 1, 1)], True),
            ("merge", [("active", 1, 1), ("superseded", 1, 1)], True),
            ("additive", [("active", 2, 2)], True),
            ("append", [("active", 2, 2)], False),
        ],
    )
    def test_a_contradiction_comes_to_what_the_mode_says(
        self, stack: Stack, mode: Resolution, held: list[tuple[str, int, int]], *, asked: bool
    ) -> None:
        """A close never drops the new statement, merging keeps one line, adding and appending retire nothing."""
        cold = Cold(stack, policy=replace(DEFAULT, resolution=mode))
        cold.model.overrule = _close
        for day, said in ((0, "olives=good"), (5, "olives=bad")):
            cold.page(said, day=day)
            cold.work()

        assert cold.rows(STATUSES) == held
        assert "Maya: the olives is bad" in cold.live()
        assert bool(cold.model.resolved) is asked
        lines = cold.rows("select count(distinct lineage_id) from memoryos.knowledge")
        assert lines == [(1 if mode == "merge" else 2,)] or mode == "ops"


class TestNote:
    def test_a_new_statement_annotates_at_most_so_many_neighbours_in_new_versions(self, stack: Stack) -> None:
        """Contents stay; what changed says which statement changed it; nothing is annotated beyond the cap."""
        cold = Cold(stack, policy=replace(DEFAULT, evolution_neighbours=2, link_floor=0.1))
        embedder = HashingEmbedder()
        cold.parts = replace(cold.parts, embedder=embedder, language_model=ExtractiveModel(embedder))
        said = [
            f"My friend Anna took me to the {place} climbing hall near the river."
            for place in ("old", "new", "red", "big")
        ]
        for day, one in enumerate(said):
            cold.page(one, day=day)
            cold.work()

        contents = cold.live()
        firsts = cold.rows(
            "select count(*) from memoryos.knowledge_note where version = 1 and cause_knowledge_id is null"
        )
        evolved = cold.rows(
            """select cause_knowledge_id, count(*) from memoryos.knowledge_note
                where cause_knowledge_id is not null group by 1"""
        )
        assert len(contents) == firsts[0][0]
        assert evolved
        assert all(count <= 2 for _, count in evolved)

    def test_where_notes_are_embedded_what_changed_is_embedded_again(self, stack: Stack) -> None:
        """Under the design that embeds notes, and only there, statements owe a vector."""
        cold = Cold(stack, policy=replace(DEFAULT, ranking="a_mem", link_floor=0.1))
        cold.page("tennis with Anna in the park")
        cold.work()
        before = cold.rows("select cast(vec as text) from memoryos.embedding where owner_kind = 'knowledge'")
        [lease] = cold.claim(WorkKind.EMBED)
        embed(cold.parts, lease)
        after = cold.rows("select cast(vec as text) from memoryos.embedding where owner_kind = 'knowledge'")
        assert lease.subject_key.startswith("knowledge:")
        assert after != before


class TestRelate:
    @pytest.fixture
    def cold(self, stack: Stack) -> Cold:
        """A scope that keeps triples by the rules."""
        cold, embedder = Cold(stack, policy=replace(DEFAULT, graph="triples")), HashingEmbedder()
        cold.parts = replace(cold.parts, embedder=embedder, language_model=ExtractiveModel(embedder))
        return cold

    def _walk(self, cold: Cold, **walk: object) -> list[tuple[str, str]]:
        with cold.stack.app.transaction(cold.tenant_id) as connection:
            found = walk_relations(connection, cold.tenant_id, Walk("maya", **walk), limit=50)  # type: ignore[arg-type]
        return sorted((row["relation"], row["target"]) for row in found)

    def test_a_relation_holds_as_long_as_its_statement(self, cold: Cold) -> None:
        """What moved ends, is read as of before, and is back when the decision is undone."""
        cold.page("I live in Leeds.", day=0)
        cold.work()
        cold.page("I moved to Ghent.", day=9)
        cold.work()
        assert self._walk(cold) == [("lives_in", "ghent")]
        [(before,)] = cold.rows(
            "select valid_from + interval '1 day' from memoryos.relation order by valid_from limit 1"
        )
        assert self._walk(cold, as_of=before) == [("lives_in", "leeds")]

        [(verdict,)] = cold.rows("select verdict_id from memoryos.verdict where decision = 'UPDATE'")
        undo_verdict(cold.parts, cold.tenant_id, verdict)
        assert ("lives_in", "leeds") in self._walk(cold)

    def test_a_relation_ends_with_its_statement_whatever_the_policy_became(self, cold: Cold) -> None:
        """Once `graph` is off no name is counted and nothing new is related, and the old still ends when it is over."""
        cold.page("I live in Leeds.", day=0)
        cold.work()
        before = cold.rows("select name, type, mentions from memoryos.entity order by 1, 2")
        cold.parts = replace(cold.parts, policy=replace(DEFAULT, graph="off"))
        cold.page("I moved to Ghent with my sister Mina.", day=9)
        cold.work()
        assert self._walk(cold) == []
        assert cold.rows("select name, type, mentions from memoryos.entity order by 1, 2") == before

    def test_a_name_is_gone_with_the_last_statement_that_says_it(self, cold: Cold) -> None:
        """Hidden while they are forgotten, deleted with them; who is named elsewhere stays."""
        cold.page("My sister Mina works as a nurse.", "quiet> ok", "My sister Mina lives in Leeds.")
        cold.page("My boss Otto hates coffee.", day=1)
        cold.work()
        names = "select distinct name from memory_v1.entities where type in ('sister', 'boss') order by 1"
        assert cold.rows(names) == [("Mina",), ("Otto",)]

        for said, left in (("nurse", ["Mina", "Otto"]), ("Leeds", ["Otto"]), ("Otto", [])):
            [(scope,)] = cold.rows("""
                update memoryos.knowledge
                   set status = 'forgotten', forgotten_at = memoryos.now(), purge_at = memoryos.now()
                 where content like '%' || :said || '%' returning scope_id
            """, said=said)  # fmt: skip
            assert cold.rows(names) == [(name,) for name in left]
            with cold.stack.app.transaction(cold.tenant_id) as connection:
                purge_due(connection, cold.tenant_id, scope, limit=10)
            kept = "select distinct name from memoryos.entity where type in ('sister', 'boss') order by 1"
            assert cold.rows(kept) == [(name,) for name in left]

    def test_names_lead_on_step_by_step(self, cold: Cold) -> None:
        """From a place to who lives there, and on to whom they know; two of one name and kind of tie are two."""
        cold.page("I live in Leeds.", "quiet> ok", "My sister Mina works as a nurse.", "My boss Mina hates coffee.")
        cold.work()
        near = self._walk(cold, name="leeds", hops=1)
        far = self._walk(cold, name="leeds", hops=2)
        assert near == [("lives_in", "leeds")]
        assert [name for relation, name in far if relation == "knows"] == ["Mina", "Mina"]

    def test_a_model_relates_what_rules_cannot_read(self, stack: Stack) -> None:
        """Its triples are stored with their statement; of two namesakes each keeps their own; the old end when it ends.

        Forgotten, a statement relates nothing any more.
        """
        cold = Cold(stack, policy=replace(DEFAULT, graph="triples"))
        with StubServer() as stub:
            client = AnthropicClient(model="stub", api_key="k", base_url=stub.url, deadline_seconds=20)
            cold.parts = replace(cold.parts, language_model=AnthropicModel(client))
            cold.page("My sister Mina bakes bread.", "My boss Mina shouts a lot.", "quiet> ok")
            cold.work()

        rows = cold.rows("""
            select e.name, e.type, k.content, k.extracted_by, r.valid_from = k.valid_from, r.valid_to
              from memoryos.relation r
              join memoryos.entity e on e.entity_id = r.target_id
              join memoryos.knowledge k on k.knowledge_id = r.knowledge_id order by e.type
        """)
        name = cold.parts.language_model.name
        assert rows == [
            ("Mina", "boss", "[2026-01-01] Maya: My boss Mina shouts a lot.", name, True, None),
            ("Mina", "sister", "[2026-01-01] Maya: My sister Mina bakes bread.", name, True, None),
        ]
        assert self._walk(cold, name="mina", hops=1) == [("knows", "Mina"), ("knows", "Mina")]
        assert [row["type"] for row in self._view(cold, "entities")] == ["boss", "sister", "speaker"]
        cold.rows("""
            update memoryos.knowledge set status = 'forgotten', forgotten_at = memoryos.now()
             where content like '%boss%' returning 1
        """)
        assert self._walk(cold, name="mina", hops=1) == [("knows", "Mina")]
        assert [row["target_type"] for row in self._view(cold, "relations")] == ["sister"]

    def _view(self, cold: Cold, name: str) -> list[dict[str, object]]:
        with cold.stack.app.transaction(cold.tenant_id) as connection:
            rows = connection.execute(text(f"select * from memory_v1.{name}")).mappings()
            return sorted((dict(row) for row in rows), key=lambda row: str(row.get("type")))
