"""The forms of a turn that are written out by hand for speed equal the plain ones, whatever people send."""

import json
from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.api.routes.turns import receipts_json
from memoryos_pipeline.domain.ids import turn_id, turn_key
from memoryos_pipeline.domain.turn_body import canonical_turn
from memoryos_pipeline.domain.turns import NewTurn, Receipt

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
FIRST, LAST = (datetime(year, 1, 2) for year in (1970, 2199))  # noqa: DTZ001 - the strategy adds the zone
TURNS = st.builds(
    NewTurn,
    TEXT, TEXT, TEXT, TEXT, st.sampled_from(["user", "assistant", "system", "tool"]), TEXT, TEXT,
    st.datetimes(FIRST, LAST, timezones=st.just(UTC)),
    st.none() | st.lists(VALUES, min_size=1, max_size=3),
    st.dictionaries(TEXT, VALUES, max_size=3),
    st.sampled_from(["normal", "system", "recalled"]),
)  # fmt: skip


class TestCanonicalTurn:
    @given(turn=TURNS)
    def test_it_is_the_sorted_json_of_the_fields(self, turn: NewTurn) -> None:
        """Two programs that sort keys and write no spaces agree on the hash of a turn."""
        fields = {**turn._asdict(), "occurred_at": turn.occurred_at.isoformat()}

        assert canonical_turn(turn) == json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


class TestTurnKey:
    @given(conversation=st.uuids(), name=TEXT)
    def test_it_is_the_id_as_text(self, conversation: UUID, name: str) -> None:
        """The quick way gives the same id as the plain one."""
        assert turn_key(str(conversation), name) == str(turn_id(conversation, name))


class TestReceiptsJson:
    @given(names=st.lists(st.tuples(TEXT, TEXT), max_size=4), duplicate=st.booleans())
    def test_it_reads_back_as_the_receipts(self, names: list[tuple[str, str]], duplicate: bool) -> None:
        """Whatever a caller calls its turns comes back as it was sent."""
        receipts = [
            Receipt(turn, "id", talk, n, 7 + n, b"\x01" * 32, duplicate) for n, (turn, talk) in enumerate(names)
        ]

        read = json.loads(receipts_json(receipts))

        assert read["turns"] == [{**one._asdict(), "body_sha256": one.body_sha256.hex()} for one in receipts]
        assert read["position"] == (7 + len(names) - 1 if names else None)
