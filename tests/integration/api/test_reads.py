"""Reading over HTTP: stable pages, provenance back to turns, and a feed that skips nothing."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.store.tenants import create_tenant
from tests.integration.api.conftest import Api
from tests.integration.readmodels.past import Past, live_a_past


def _get(api: Api, path: str, **params: Any) -> dict[str, Any]:
    response = api.client.get(path, params=params)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def _all(api: Api, listing: str, *, limit: int, **params: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        answer = _get(api, f"/v1/{listing}", limit=limit, **({"cursor": cursor} if cursor else {}), **params)
        assert len(answer[listing]) <= limit
        rows += answer[listing]
        cursor = answer["cursor"]
        if cursor is None:
            return rows


@pytest.fixture
def past(api: Api) -> Past:
    """One user's memory in the caller's tenant."""
    return live_a_past(api.stack.app, api.stack.tenant_id)


class TestListing:
    @pytest.mark.parametrize("limit", [1, 2, 3, 7, 500])
    @pytest.mark.usefixtures("past")
    def test_pages_of_any_size_give_the_same_turns(self, api: Api, limit: int) -> None:
        """Whatever the limit: every turn once, in the same order."""
        turns = _all(api, "turns", limit=limit, user_id="maya")

        assert [turn["seq"] for turn in turns] == [1, 2, 3, 4, 5, 6, 7]
        assert [turn["tier"] for turn in turns] == ["warm"] * 5 + ["hot"] * 2

    def test_rows_that_arrive_meanwhile_shift_nothing(self, api: Api, past: Past) -> None:
        """An older row that is imported between two requests neither repeats nor hides another."""
        first = _get(api, "/v1/turns", user_id="maya", limit=3)
        with api.stack.owner.transaction(past.tenant_id) as connection:
            connection.execute(
                text("update memoryos.turn set occurred_at = occurred_at - interval '1 year' where seq = 7")
            )
        second = _get(api, "/v1/turns", user_id="maya", limit=3, cursor=first["cursor"])

        assert [turn["seq"] for turn in second["turns"]] == [4, 5, 6]

    @pytest.mark.parametrize(
        ("tier", "count"),
        [
            ("turns", 7),
            ("pages", 1),
            ("segments", 1),
            ("knowledge", 2),
            ("links", 1),
            ("profile", 1),
            ("conversations", 1),
        ],
    )
    @pytest.mark.usefixtures("past")
    def test_every_tier_can_be_listed(self, api: Api, tier: str, count: int) -> None:
        """Rows speak in the sender's names; ids that only join tables inside stay inside."""
        rows = _all(api, tier, limit=1, user_id="maya", agent_id="companion")

        assert len(rows) == count
        assert all(
            row["user_id"] == "maya" and not {"tenant_id", "scope_id", "conversation_key"} & set(row) for row in rows
        )

    @pytest.mark.parametrize("tier", ["turns", "pages", "segments", "knowledge", "links", "profile", "conversations"])
    def test_without_a_user_it_lists_the_tenant(self, api: Api, past: Past, tier: str) -> None:
        """And never more than the tenant: the same user elsewhere is not in it."""
        other = mint_id()
        create_tenant(api.stack.owner, other, "other")
        live_a_past(api.stack.app, other)
        live_a_past(api.stack.app, past.tenant_id, user_id="jun")

        assert {row["user_id"] for row in _all(api, tier, limit=2)} == {"maya", "jun"}
        assert len(_all(api, tier, limit=2)) == 2 * len(_all(api, tier, limit=500, user_id="maya"))

    @pytest.mark.parametrize(
        ("filters", "count"),
        [
            ({"user_id": "nobody"}, 0),
            ({"agent_id": "companion"}, 7),
            ({"agent_id": "nobody"}, 0),
            ({"user_id": "maya", "agent_id": "nobody"}, 0),
            ({"user_id": "maya", "conversation_id": "c1"}, 7),
            ({"user_id": "maya", "conversation_id": "c2"}, 0),
            ({"user_id": "maya", "tier": "hot"}, 2),
        ],
    )
    @pytest.mark.usefixtures("past")
    def test_filters_narrow(self, api: Api, filters: dict[str, str], count: int) -> None:
        """Each filter leaves what equals it, nothing else."""
        assert len(_all(api, "turns", limit=500, **filters)) == count

    def test_history_shows_what_was_superseded(self, api: Api, past: Past) -> None:
        """Live knowledge is what holds now; history keeps every version with its state."""
        live = _all(api, "knowledge", limit=500, user_id="maya")
        history = _all(api, "knowledge", limit=1, user_id="maya", history="true")

        assert {row["knowledge_id"] for row in live} == {str(past.new), str(past.other)}
        assert [row["status"] for row in history] == ["superseded", "active", "active"]
        assert len(live[0]["source_turn_ids"]) == 2

    @pytest.mark.usefixtures("past")
    def test_kind_narrows_knowledge(self, api: Api) -> None:
        """`kind` is one of the kinds of knowledge."""
        assert [row["kind"] for row in _all(api, "knowledge", limit=9, kind="note")] == ["note"]

    @pytest.mark.parametrize("limit", ["0", "501", "-1", "many"])
    def test_a_limit_out_of_bounds_is_refused(self, api: Api, limit: str) -> None:
        """1 to 500."""
        response = api.client.get("/v1/turns", params={"limit": limit})

        assert (response.status_code, response.json()["error"]["field"]) == (422, "limit")

    @pytest.mark.parametrize(
        "cursor", ["x", "W10", "bm90IGpzb24", "é", "W1siYSJdXQ", "A" * 5000, "bnVsbA", "WyJ0dXJucyIsMV0"]
    )
    def test_a_made_up_cursor_is_refused(self, api: Api, cursor: str) -> None:
        """422 that names the field, never a 500."""
        response = api.client.get("/v1/turns", params={"cursor": cursor})

        assert (response.status_code, response.json()["error"]["field"]) == (422, "cursor")

    @pytest.mark.usefixtures("past")
    def test_a_cursor_of_another_listing_is_refused(self, api: Api) -> None:
        """A cursor goes on where it came from."""
        cursor = _get(api, "/v1/turns", limit=1)["cursor"]

        assert api.client.get("/v1/pages", params={"cursor": cursor}).status_code == 422
        assert api.client.get("/v1/events", params={"after": cursor}).status_code == 422

    def test_a_filter_that_cannot_be_text_is_refused(self, api: Api) -> None:
        """A NUL in a filter is a 422 that names it."""
        response = api.client.get("/v1/turns?user_id=a%00b")

        assert (response.status_code, response.json()["error"]["field"]) == (422, "user_id")


class TestProvenance:
    def test_knowledge_leads_back_to_its_turns(self, api: Api, past: Past) -> None:
        """One statement tells its sources, versions, notes, links and the verdict that made it."""
        found = _get(api, f"/v1/knowledge/{past.new}")

        assert [turn["seq"] for turn in found["sources"]] == [2, 3]
        assert found["sources"][0]["content"] == "turn 2 canary"
        assert [(row["version"], row["status"]) for row in found["versions"]] == [(1, "superseded"), (2, "active")]
        assert [note["context"] for note in found["notes"]] == ["canary"]
        assert [link["target_id"] for link in found["links"]] == [str(past.other)]
        assert [verdict["decision"] for verdict in found["verdicts"]] == ["UPDATE"]

    def test_a_turn_leads_to_what_was_learnt_from_it(self, api: Api, past: Past) -> None:
        """And back: every statement that cites it."""
        turn_id = _all(api, "turns", limit=500, user_id="maya")[2]["turn_id"]
        found = _get(api, f"/v1/turns/{turn_id}")

        assert (found["seq"], found["conversation_id"]) == (3, "c1")
        assert {row["knowledge_id"] for row in found["knowledge"]} == {str(past.new), str(past.other)}

    @pytest.mark.parametrize("path", ["turns", "knowledge"])
    def test_an_unknown_id_is_not_found(self, api: Api, path: str) -> None:
        """404 for what is not there, 422 for what is no id."""
        assert api.client.get(f"/v1/{path}/{mint_id()}").status_code == 404
        assert api.client.get(f"/v1/{path}/not-an-id").status_code == 422

    def test_another_tenants_id_is_not_found(self, api: Api) -> None:
        """Knowing an id opens nothing."""
        other = mint_id()
        create_tenant(api.stack.owner, other, "other")
        theirs = live_a_past(api.stack.app, other)

        assert api.client.get(f"/v1/knowledge/{theirs.new}").status_code == 404


class TestPipeline:
    def test_says_what_is_owed(self, api: Api, past: Past) -> None:
        """Drained means nothing due, nothing leased, nothing waiting for its next try; dead work is told apart."""
        rest = _get(api, "/v1/pipeline")
        with api.stack.owner.transaction(past.tenant_id) as connection:
            for kind, change in {
                "merge": "state = 'ready', run_after = clock_timestamp() - interval '1 minute'",
                "distill": "state = 'ready', run_after = clock_timestamp() + interval '1 minute'",
                "summarize": "state = 'leased', lease_until = clock_timestamp() + interval '1 minute'",
            }.items():
                connection.execute(text(f"update memoryos.work set {change} where kind = '{kind}'"))
        busy = _get(api, "/v1/pipeline")

        assert (rest["owed"], rest["dead"], rest["drained"]) == (0, 1, True)
        assert (busy["owed"], busy["ready"], busy["waiting"], busy["leased"], busy["drained"]) == (3, 1, 1, 1, False)
        assert busy["by_kind"]["merge"]["oldest_ready_age_seconds"] >= 60
        assert busy["position"] > rest["position"]


class TestEvents:
    def test_the_feed_goes_on_where_it_stopped(self, api: Api, past: Past) -> None:
        """Each event once, in order; at the end the cursor stays valid for what comes later."""
        first = _get(api, "/v1/events", limit=1)
        second = _get(api, "/v1/events", limit=5, after=first["cursor"])
        third = _get(api, "/v1/events", after=second["cursor"])
        live_a_past(api.stack.app, past.tenant_id, user_id="jun")
        fourth = _get(api, "/v1/events", after=third["cursor"])

        assert [row["kind"] for row in first["events"] + second["events"]] == ["turns_recorded", "page_sealed"]
        assert third["events"] == []
        assert [(row["kind"], row["user_id"]) for row in fourth["events"]] == [
            ("turns_recorded", "jun"),
            ("page_sealed", "jun"),
        ]

    def test_a_late_commit_is_never_skipped(self, api: Api, past: Past) -> None:
        """While a transaction that started earlier is open, later events wait; nothing is passed over."""
        cursor = _get(api, "/v1/events")["cursor"]
        write = text("""
            insert into memoryos.event (tenant_id, kind, scope_id, subject_id) values (:tenant, :kind, :scope, :new)
        """)
        with api.stack.app.transaction(past.tenant_id) as slow:
            slow.execute(write, {**past.values(), "kind": "slow"})
            with api.stack.app.transaction(past.tenant_id) as quick:
                quick.execute(write, {**past.values(), "kind": "quick"})
            meanwhile = _get(api, "/v1/events", after=cursor)
        later = _get(api, "/v1/events", after=meanwhile["cursor"])

        assert meanwhile["events"] == []
        assert [row["kind"] for row in later["events"]] == ["slow", "quick"]

    def test_events_hold_ids_and_numbers_only(self, api: Api, past: Past) -> None:
        """No content is in the feed."""
        event = _get(api, "/v1/events")["events"][0]

        assert event["conversation_id"] == "c1"
        assert UUID(event["subject_id"]) == past.conversation
        assert isinstance(event["position"], int)


class TestAccess:
    @pytest.mark.parametrize("path", ["turns", "pages", "knowledge", "profile", "conversations", "pipeline", "events"])
    def test_without_a_key_nothing_is_read(self, api: Api, path: str) -> None:
        """401, whatever is asked."""
        assert api.client.get(f"/v1/{path}", headers={"authorization": "Bearer mem_wrong"}).status_code == 401
