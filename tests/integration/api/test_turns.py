"""Ingest over HTTP: what is answered is committed, what is wrong is named, nothing is half-stored."""

import gzip
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, text

from memoryos_pipeline.domain.ids import mint_id
from memoryos_pipeline.store.tenants import create_tenant, mint_key
from tests.integration.api.conftest import Api


def _body(client_turn_id: str = "t1", **changes: Any) -> dict[str, Any]:
    body = {
        "user_id": "maya",
        "conversation_id": "c1",
        "client_turn_id": client_turn_id,
        "role": "user",
        "content": "I moved to Kamakura",
        "occurred_at": "2026-05-04T18:02:00+09:00",
    }
    return {name: value for name, value in {**body, **changes}.items() if value is not ...}


def _count(api: Api, table: str = "turn") -> int:
    with api.stack.app.transaction(api.stack.tenant_id) as connection:
        found: int = connection.execute(text(f"select count(*) from memoryos.{table}")).scalar_one()
        return found


def _post_raw(api: Api, content: bytes, **headers: str) -> Any:
    return api.client.post("/v1/turns", content=content, headers={"content-type": "application/json", **headers})


class TestPost:
    def test_one_turn_is_answered_with_its_receipt(self, api: Api) -> None:
        """202 with ids, seq and position; the row is there when the answer is."""
        answer = api.client.post("/v1/turns", json=_body())

        assert answer.status_code == 202
        turn = answer.json()["turns"][0]
        assert (turn["client_turn_id"], turn["conversation_id"], turn["seq"], turn["duplicate"]) == (
            "t1",
            "c1",
            1,
            False,
        )
        assert answer.json()["position"] == turn["position"] > 0
        with api.stack.app.transaction(api.stack.tenant_id) as connection:
            stored = connection.execute(text("select turn_id::text, content, speaker from memoryos.turn")).one()
        assert stored == (turn["turn_id"], "I moved to Kamakura", "maya")

    def test_a_thousand_turns_go_in_one_request(self, api: Api) -> None:
        """The largest batch is answered in order."""
        answer = api.client.post("/v1/turns", json={"turns": [_body(f"t{i}") for i in range(1000)]})

        assert answer.status_code == 202
        assert [turn["seq"] for turn in answer.json()["turns"]] == list(range(1, 1001))
        assert _count(api) == 1000

    def test_every_script_comes_back_as_sent(self, api: Api) -> None:
        """Japanese, Korean, Chinese, emoji and code survive in text and ids, and in the receipt."""
        said = "今日は寒い。오늘은 춥다. 今天很冷。👩‍👩‍👧 {0} %s </turn> ```\\n"
        answer = api.client.post("/v1/turns", json=_body("键'%/..\"🏯", content=said, user_id="真矢 마야"))

        assert answer.json()["turns"][0]["client_turn_id"] == "键'%/..\"🏯"
        with api.stack.app.transaction(api.stack.tenant_id) as connection:
            assert connection.execute(text("select content from memoryos.turn")).scalar_one() == said

    def test_a_turn_takes_at_most_three_statements(self, api: Api) -> None:
        """A single POST into a long conversation: three statements beside set_config."""
        api.client.post("/v1/turns", json={"turns": [_body(f"t{i}") for i in range(20)]})
        with _statements(api) as seen:
            api.client.post("/v1/turns", json=_body("one more"))

        assert len(seen) == 4, seen
        assert sum("set_config" in statement for statement in seen) == 1

    def test_a_gzip_body_is_accepted(self, api: Api) -> None:
        """A packed body means the same as a plain one."""
        packed = gzip.compress(json.dumps(_body()).encode())
        assert _post_raw(api, packed, **{"content-encoding": "gzip"}).status_code == 202


@contextmanager
def _statements(api: Api) -> Iterator[list[str]]:
    seen: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        seen.append(statement)

    event.listen(api.stack.app.engine, "before_cursor_execute", note)
    yield seen
    event.remove(api.stack.app.engine, "before_cursor_execute", note)


class TestRepeat:
    def test_the_same_body_gets_the_same_answer(self, api: Api) -> None:
        """A client that does not know the outcome sends again and learns it."""
        first = api.client.post("/v1/turns", json=_body()).json()
        again = api.client.post("/v1/turns", json=_body()).json()

        assert again["position"] == first["position"]
        assert again["turns"] == [{**first["turns"][0], "duplicate": True}]

    def test_another_body_is_a_422(self, api: Api) -> None:
        """A client_turn_id that stands for another body is refused, naming the field."""
        api.client.post("/v1/turns", json=_body())
        answer = api.client.post("/v1/turns", json=_body(content="other"))

        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "client_turn_id_conflict")
        assert answer.json()["error"]["field"] == "client_turn_id"
        assert _count(api) == 1

    def test_a_hundred_posts_at_once_make_one_turn(self, api: Api) -> None:
        """100 parallel requests with one key: all 202, one seq, one row."""
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda _: api.client.post("/v1/turns", json=_body()), range(100)))

        assert {answer.status_code for answer in answers} == {202}
        assert {answer.json()["turns"][0]["seq"] for answer in answers} == {1}
        assert _count(api) == 1


DEEP: Any = "x"
for _ in range(40):
    DEEP = [DEEP]

WRONG_FIELDS = [
    ({"user_id": ...}, "user_id"),
    ({"user_id": ""}, "user_id"),
    ({"user_id": "\u3000"}, "user_id"),
    ({"user_id": "a\nb"}, "user_id"),
    ({"user_id": "u" * 257}, "user_id"),
    ({"user_id": 7}, "user_id"),
    ({"user_id": "a\u0000b"}, "user_id"),
    ({"agent_id": []}, "agent_id"),
    ({"conversation_id": None}, "conversation_id"),
    ({"client_turn_id": ...}, "client_turn_id"),
    ({"client_turn_id": "\ud800"}, "client_turn_id"),
    ({"role": "User"}, "role"),
    ({"role": ["user"]}, "role"),
    ({"speaker": "\u200b"}, "speaker"),
    ({"speaker": "a", "name": "b"}, "name"),
    ({"kind": "odd"}, "kind"),
    ({"content": ""}, "content"),
    ({"content": " \n\u3000\u200b"}, "content"),
    ({"content": None}, "content"),
    ({"content": 5}, "content"),
    ({"content": "before\u0000after"}, "content"),
    ({"content": "high \ud83d half"}, "content"),
    ({"content": "low \udc00 half"}, "content"),
    ({"content": "あ" * 21846}, "content"),
    ({"content": []}, "content"),
    ({"content": [{"type": "text"}]}, "content.0.text"),
    ({"content": [{"type": "text", "text": "x\u0000"}]}, "content.0.text"),
    ({"content": [{"text": "x"}]}, "content.0.type"),
    ({"content": ["fine", 5]}, "content.1"),
    ({"occurred_at": ...}, "occurred_at"),
    ({"occurred_at": "2026-05-04T18:02:00"}, "occurred_at"),
    ({"occurred_at": "yesterday"}, "occurred_at"),
    ({"occurred_at": 1780000000}, "occurred_at"),
    ({"occurred_at": "1969-12-31T23:59:59Z"}, "occurred_at"),
    ({"occurred_at": "0001-01-01T00:00:00+14:00"}, "occurred_at"),
    ({"occurred_at": "9999-12-31T23:59:59-14:00"}, "occurred_at"),
    ({"occurred_at": "2026-05-04T18:02:00.1234567Z"}, "occurred_at"),
    ({"occurred_at": "2026-05-04T18:02:00+17:00"}, "occurred_at"),
    ({"metadata": []}, "metadata"),
    ({"metadata": {"a": "\u0000"}}, "metadata.a"),
    ({"metadata": {"a": {"\ud800": 1}}}, "metadata.a.?"),
    ({"metadata": {"a": 2**63}}, "metadata.a"),
    ({"metadata": {str(i): i for i in range(257)}}, "metadata"),
    ({"metadata": {"a": DEEP}}, None),
    ({"unknown": 1}, "unknown"),
    ({"tenant_id": "x"}, "tenant_id"),
    ({"\ud800": 1}, "?"),
]


class TestRefuse:
    @pytest.mark.parametrize(("change", "field"), WRONG_FIELDS)
    def test_a_wrong_field_is_named_and_nothing_stored(self, api: Api, change: dict[str, Any], field: str) -> None:
        """422 with the field, alone and inside a batch, where it spoils the whole request."""
        alone = _post_raw(api, json.dumps(_body(**change)).encode())
        batch = _post_raw(api, json.dumps({"turns": [_body("good"), _body(**change)]}).encode())

        assert (alone.status_code, batch.status_code) == (422, 422)
        named = alone.json()["error"]["field"]
        assert named == field if field else named.startswith("metadata.a")
        assert batch.json()["error"]["field"] == f"turns.1.{named}"[:256]
        assert [_count(api, table) for table in ("turn", "conversation", "scope", "event")] == [0, 0, 0, 0]

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{",
            b"\xff\xfe",
            b'{"content": "\xed\xa0\x80"}',
            b'{"metadata": {"a": NaN}}',
            b'{"metadata": {"a": -Infinity}}',
            b'{"role": "user", "role": "tool"}',
            b'{"metadata": ' + b"9" * 5000 + b"}",
            b'{"metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            b"[" * 1_000_000,
        ],
    )
    def test_what_is_not_json_is_a_400(self, api: Api, body: bytes) -> None:
        """Broken, doubled, endless or non-JSON input is the caller's fault, never ours."""
        answer = _post_raw(api, body)
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, "body")

    @pytest.mark.parametrize("body", ["[]", '"x"', "5", "null", '{"turns": []}', '{"turns": 5}', '{"turns": [[]]}'])
    def test_another_shape_is_a_422(self, api: Api, body: str) -> None:
        """JSON that is no turn and no list of turns is refused."""
        assert _post_raw(api, body.encode()).status_code == 422

    def test_an_infinite_number_is_named(self, api: Api) -> None:
        """1e400 is JSON, but no number that can be kept."""
        raw = json.dumps(_body(metadata={"a": 0})).replace('"a": 0', '"a": 1e400').encode()
        answer = _post_raw(api, raw)
        assert (answer.status_code, answer.json()["error"]["field"]) == (422, "metadata.a")

    def test_a_thousand_and_one_turns_are_refused(self, api: Api) -> None:
        """One above the largest batch is refused whole."""
        answer = api.client.post("/v1/turns", json={"turns": [_body(f"t{i}") for i in range(1001)]})
        assert (answer.status_code, answer.json()["error"]["field"], _count(api)) == (422, "turns", 0)

    def test_text_at_the_limit_is_stored(self, api: Api) -> None:
        """65,536 bytes are accepted in any script; WRONG_FIELDS holds the byte above."""
        content = "あ" * 21845 + "x"
        assert api.client.post("/v1/turns", json=_body(content=content)).status_code == 202


class TestLimits:
    def test_a_large_body_is_a_413(self, api: Api) -> None:
        """More than 8 MiB is refused, announced or not."""
        assert _post_raw(api, b" " * (8 * 1024 * 1024 + 1)).status_code == 413
        unannounced = (b" " * 1_000_000 for _ in range(9))
        assert api.client.post("/v1/turns", content=unannounced).status_code == 413

    def test_a_bomb_is_a_413(self, api: Api) -> None:
        """A small gzip body that would unpack to a gigabyte is stopped at 8 MiB, quickly."""
        bomb = gzip.compress(b"\0" * 100_000_000, compresslevel=9)
        started = time.monotonic()
        answer = _post_raw(api, bomb, **{"content-encoding": "gzip"})

        assert answer.status_code == 413
        assert time.monotonic() - started < 5.0

    @pytest.mark.parametrize(
        ("encoding", "body", "status"),
        [("gzip", b"not gzip", 400), ("gzip", gzip.compress(b"{}", mtime=0)[:-4], 400), ("br", b"x", 415)],
    )
    def test_a_broken_encoding_is_refused(self, api: Api, encoding: str, body: bytes, status: int) -> None:
        """Broken, cut or unknown encodings are the caller's fault."""
        assert _post_raw(api, body, **{"content-encoding": encoding}).status_code == status


class TestTenants:
    def test_keys_decide_who_sees_what(self, api: Api) -> None:
        """Another tenant with the same names gets its own rows, receipts and numbers."""
        other = mint_id()
        create_tenant(api.stack.owner, other, "other")
        key = {"authorization": f"Bearer {mint_key(api.stack.owner, other)}"}
        api.client.post("/v1/turns", json=_body())
        api.client.post("/v1/turns", json=_body("t2"))
        theirs = api.client.post("/v1/turns", json=_body("t2", content="theirs"), headers=key)
        asked = {"user_id": "maya", "conversation_id": "c1", "client_turn_ids": ["t1", "t2"]}

        assert theirs.json()["turns"][0]["seq"] == 1
        assert len(api.client.post("/v1/receipts", json=asked).json()["turns"]) == 2
        assert len(api.client.post("/v1/receipts", json=asked, headers=key).json()["turns"]) == 1

    def test_without_a_key_nothing_is_done(self, api: Api) -> None:
        """No key, an unknown key and a key without the scope are refused before the body counts."""
        reader = mint_key(api.stack.owner, api.stack.tenant_id, scopes=("read",))
        statuses = [
            api.client.post("/v1/turns", json=_body(), headers={"authorization": value}).status_code
            for value in ("", "Bearer mem_unknown", "Basic x", f"Bearer {reader}")
        ]
        assert statuses == [401, 401, 401, 403]
        assert _count(api) == 0


class TestReceipts:
    def test_only_recorded_turns_have_receipts(self, api: Api) -> None:
        """What was never recorded is left out; what was has its first receipt."""
        sent = api.client.post("/v1/turns", json=_body()).json()["turns"][0]
        asked = {"user_id": "maya", "conversation_id": "c1", "client_turn_ids": ["never", "t1"]}

        assert api.client.post("/v1/receipts", json=asked).json() == {"turns": [sent], "position": sent["position"]}
        wrong = api.client.post("/v1/receipts", json={**asked, "client_turn_ids": ["a", "\u0000"]})
        assert (wrong.status_code, wrong.json()["error"]["field"]) == (422, "client_turn_ids.1")


class TestClose:
    def test_a_closed_conversation_owes_work(self, api: Api) -> None:
        """Closing answers 202 and leaves an `advance` row; an unknown conversation is a 404."""
        api.client.post("/v1/turns", json=_body())
        name = {"user_id": "maya", "conversation_id": "c1"}

        assert api.client.post("/v1/conversations/close", json=name).status_code == 202
        assert _count(api, "work") == 1
        assert api.client.post("/v1/conversations/close", json={**name, "user_id": "li"}).status_code == 404


class TestDescribe:
    def test_the_document_describes_the_body(self, api: Api) -> None:
        """OpenAPI names every field that the parser takes, and no other."""
        from memoryos_pipeline.domain.turn_body import FIELDS

        paths = api.client.get("/openapi.json").json()["paths"]
        one, many = paths["/v1/turns"]["post"]["requestBody"]["content"]["application/json"]["schema"]["oneOf"]
        assert set(one["properties"]) == FIELDS
        assert many["properties"]["turns"]["items"] == one
