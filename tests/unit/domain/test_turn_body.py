"""A body becomes a turn, or an error that names the field; its hash tells whether it is the same turn again."""

from datetime import timedelta
from typing import Any

import pytest

from memoryos_pipeline.domain.errors import InvalidTurnError
from memoryos_pipeline.domain.turn_body import (
    hash_turn,
    parse_conversation_name,
    parse_moment,
    parse_receipt_query,
    parse_turn,
    parse_turns,
)

BODY = {
    "user_id": "maya",
    "conversation_id": "c1",
    "client_turn_id": "t1",
    "role": "user",
    "content": "I moved to Kamakura",
    "occurred_at": "2026-05-04T18:02:00+09:00",
}


def _refused(body: Any, **options: Any) -> str:
    with pytest.raises(InvalidTurnError) as caught:
        parse_turn(body, **options)
    return caught.value.field


class TestParseTurn:
    @pytest.mark.parametrize(
        ("role", "speaker", "kind"),
        [
            ("user", "maya", "normal"),
            ("assistant", "default", "normal"),
            ("tool", "default", "normal"),
            ("system", "default", "system"),
        ],
    )
    def test_what_is_left_out_follows_from_the_role(self, role: str, speaker: str, kind: str) -> None:
        """Agent, speaker, kind and metadata have defaults."""
        turn = parse_turn({**BODY, "role": role})
        assert (turn.agent_id, turn.speaker, turn.kind, turn.metadata, turn.parts) == (
            "default",
            speaker,
            kind,
            {},
            None,
        )

    def test_null_means_left_out_where_there_is_a_default(self) -> None:
        """Clients that send null for optional fields get the defaults."""
        empty = {"agent_id": None, "speaker": None, "name": None, "metadata": None, "kind": None}
        assert parse_turn({**BODY, **empty}) == parse_turn(BODY)

    def test_name_is_another_word_for_speaker(self) -> None:
        """`name` as other APIs call it; both are fine when they agree."""
        assert parse_turn({**BODY, "name": "Maya"}) == parse_turn({**BODY, "speaker": "Maya", "name": "Maya"})
        assert _refused({**BODY, "speaker": "Maya", "name": "Li"}) == "name"

    @pytest.mark.parametrize("field", BODY)
    def test_required_fields_are_named(self, field: str) -> None:
        """Left out or null, the answer is the same."""
        assert _refused({name: value for name, value in BODY.items() if name != field}) == field
        assert _refused({**BODY, field: None}, path="turns.3.") == f"turns.3.{field}"

    @pytest.mark.parametrize("body", [None, [], "x", 5])
    def test_what_is_no_object_is_refused(self, body: Any) -> None:
        """A turn is an object; its place is told."""
        assert _refused(body) == "body"
        assert _refused(body, path="turns.3.") == "turns.3"

    def test_unknown_fields_are_named(self) -> None:
        """A misspelt field is never dropped silently."""
        assert _refused({**BODY, "ocurred_at": "x", "zeta": 1}, path="turns.0.") == "turns.0.ocurred_at"


class TestParseMoment:
    @pytest.mark.parametrize(
        ("text", "offset_minutes"),
        [
            ("2026-05-04T18:02:00Z", 0),
            ("2026-05-04T18:02:00.123456+09:00", 540),
            ("2026-05-04 18:02-03:30", -210),
            ("1970-01-01T00:00:00Z", 0),
            ("2199-12-31T23:59:59+00:00", 0),
        ],
    )
    def test_the_offset_is_kept(self, text: str, offset_minutes: int) -> None:
        """A moment keeps the offset it was said in."""
        assert parse_moment(text, "occurred_at").utcoffset() == timedelta(minutes=offset_minutes)

    @pytest.mark.parametrize(
        "value",
        [
            None, 5, "", "yesterday", "2026-05-04", "2026-05-04T18:02:00", "2026-02-30T00:00:00Z",
            "1969-12-31T23:59:59Z", "2200-01-01T00:00:00Z", "0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00",
            "2026-05-04T18:02:00+16:00",
            "2026-05-04T18:02:00+09:00:30", "2026-05-04T18:02:00.1234567Z", "2" * 5000,
        ],
    )  # fmt: skip
    def test_other_moments_are_refused(self, value: Any) -> None:
        """No offset, no such day, out of range, finer than can be kept."""
        with pytest.raises(InvalidTurnError) as caught:
            parse_moment(value, "occurred_at")
        assert caught.value.field == "occurred_at"


class TestParseTurns:
    def test_one_and_many(self) -> None:
        """A single object and a list mean turns in order."""
        second = {**BODY, "client_turn_id": "t2"}
        assert parse_turns(BODY) == [parse_turn(BODY)]
        assert parse_turns({"turns": [BODY, second]}) == [parse_turn(BODY), parse_turn(second)]

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ([], "body"),
            ({"turns": []}, "turns"),
            ({"turns": {}}, "turns"),
            ({"turns": [BODY] * 1001}, "turns"),
            ({"turns": [BODY], "user_id": "maya"}, "user_id"),
            ({"turns": [BODY, {**BODY, "role": "robot"}]}, "turns.1.role"),
        ],
    )
    def test_the_place_is_named(self, body: Any, field: str) -> None:
        """The position of the wrong turn stands in the field."""
        with pytest.raises(InvalidTurnError) as caught:
            parse_turns(body)
        assert caught.value.field == field


class TestHash:
    def test_the_same_turn_in_other_words_is_the_same(self) -> None:
        """Order of keys, defaults written out and Z for +00:00 change nothing."""
        body = {**BODY, "occurred_at": "2026-05-04T09:02:00Z", "metadata": {"a": 1, "b": 2}}
        same = {
            "metadata": {"b": 2, "a": 1}, **BODY, "occurred_at": "2026-05-04T09:02:00.000+00:00", "agent_id": "default",
            "name": "maya", "kind": "normal",
        }  # fmt: skip
        assert hash_turn(parse_turn(body)) == hash_turn(parse_turn(same))

    @pytest.mark.parametrize(
        "change",
        [
            {"user_id": "li", "speaker": "maya"},
            {"agent_id": "other"},
            {"conversation_id": "c2"},
            {"client_turn_id": "t2"},
            {"role": "assistant", "speaker": "maya"},
            {"speaker": "Maya"},
            {"content": "I moved to kamakura"},
            {"content": [{"type": "text", "text": "I moved to Kamakura"}]},
            {"occurred_at": "2026-05-04T18:02:00+08:00"},
            {"occurred_at": "2026-05-04T09:02:00Z"},
            {"metadata": {"a": 1}},
            {"metadata": {"a": "1"}},
            {"kind": "recalled"},
        ],
    )
    def test_every_field_counts(self, change: dict[str, Any]) -> None:
        """Any difference in what is stored is another turn."""
        assert hash_turn(parse_turn(BODY)) != hash_turn(parse_turn({**BODY, **change}))

    def test_the_hash_is_stable(self) -> None:
        """Stored hashes must be found again by every later version."""
        assert hash_turn(parse_turn(BODY)).hex() == "a544998cdc89ffd2a5c3f0ae11947689f63c98066d56422b46cc48a8dfdc403c"


class TestNames:
    def test_a_conversation_name_has_the_default_agent(self) -> None:
        """Naming a conversation takes two fields."""
        assert parse_conversation_name({"user_id": "maya", "conversation_id": "c1"}).agent_id == "default"

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"client_turn_ids": []}, "client_turn_ids"),
            ({"client_turn_ids": "t1"}, "client_turn_ids"),
            ({"client_turn_ids": ["t1", ""]}, "client_turn_ids.1"),
            ({"client_turn_ids": ["t"] * 1001}, "client_turn_ids"),
            ({"client_turn_ids": None}, "client_turn_ids"),
            ({"user_id": None}, "user_id"),
            ({"role": "user"}, "role"),
        ],
    )
    def test_a_wrong_receipt_query_is_named(self, change: dict[str, Any], field: str) -> None:
        """Asking for receipts is checked like recording."""
        query = {"user_id": "maya", "conversation_id": "c1", "client_turn_ids": ["t1"]}
        with pytest.raises(InvalidTurnError) as caught:
            parse_receipt_query({**query, **change})
        assert caught.value.field == field
