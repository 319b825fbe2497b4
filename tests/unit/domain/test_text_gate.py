"""The text gate lets through what can be stored as sent, and names what cannot."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.domain.errors import InvalidTurnError
from memoryos_pipeline.domain.text_gate import (
    MAX_TEXT_BYTES,
    flatten_content,
    gate_id,
    gate_object,
    gate_text,
    is_blank,
    show_name,
)

IDS = [
    "a", "a/b", "a:b", "...", "\\*", "[x]", "main", "name with spaces", "全角１２３", "🏯", "it's", '"', "100%", "%s",
    "{0}",
    "김하늘", "👩‍👩‍👧", " edge ", "é", "x" * 256, "あ" * 256,
]  # fmt: skip
ORDINARY = ["a", "{0} %s", "</turn>", "C:\\x", "今日は", "👍🏽", "\ufeffx", "a\x07b", "\u202ex"]
NO_IDS = ["x" * 257, "a\nb", "a\0b", "a\x7fb", "\u2028", "\ud800", 7, None, ["a"]]
BLANKS = ["", " ", "\n\t", "\u3000", "\u200b\u200d\ufeff", "\u2060\u00ad", "\u3164", "\u2800", "\ufe0f", "\x01\x1f"]


class TestGateText:
    @pytest.mark.parametrize(
        "text", ["a", "{0} %s", "</turn>", "C:\\x", "今日は", "👍🏽", "\ufeffx", "a\x07b", "\u202ex"]
    )
    def test_ordinary_text_comes_back_unchanged(self, text: str) -> None:
        """Nothing is normalised, trimmed or escaped."""
        assert gate_text(text, "content") is text

    @pytest.mark.parametrize("text", BLANKS)
    def test_what_shows_nothing_is_refused(self, text: str) -> None:
        """Spaces of any width, zero-width characters and fillers are blank."""
        with pytest.raises(InvalidTurnError, match="content: must not be blank"):
            gate_text(text, "content")

    @pytest.mark.parametrize("text", ["\0", "a\0b", "\ud83d", "x\udc00y", "\ude00\ud83d"])
    def test_what_cannot_be_stored_is_refused(self, text: str) -> None:
        """NUL and lone surrogates, wherever they stand."""
        with pytest.raises(InvalidTurnError) as caught:
            gate_text(text, "content")
        assert caught.value.field == "content"
        assert text not in str(caught.value)

    @pytest.mark.parametrize(("unit", "size"), [("a", 1), ("é", 2), ("あ", 3), ("🏯", 4)])
    def test_the_limit_counts_bytes(self, unit: str, size: int) -> None:
        """Exactly 64 KiB of UTF-8 pass in any script, one byte more does not."""
        fill = unit * (MAX_TEXT_BYTES // size) + "x" * (MAX_TEXT_BYTES % size)
        assert gate_text(fill, "content") is fill
        with pytest.raises(InvalidTurnError, match="65537 bytes"):
            gate_text(fill + "x", "content")

    @given(st.text())
    def test_what_passes_can_be_encoded(self, text: str) -> None:
        """Whatever the gate lets through has a UTF-8 form without NUL; everything else is refused by name."""
        storable = "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
        if storable and not is_blank(text):
            assert gate_text(text, "content").encode()
        else:
            with pytest.raises(InvalidTurnError, match="content: "):
                gate_text(text, "content")


class TestGateId:
    @pytest.mark.parametrize("value", IDS)
    def test_printable_ids_pass(self, value: str) -> None:
        """Quotes, percent signs, slashes, spaces, any script and emoji are fine."""
        assert gate_id(value, "user_id") is value

    @pytest.mark.parametrize(
        "value", [*BLANKS, "x" * 257, "a\nb", "a\0b", "a\x7fb", "\u2028", "\ud800", 7, None, ["a"], ".", ".."]
    )
    def test_other_ids_are_refused(self, value: Any) -> None:
        """Blank, long, with control characters or line breaks, a step in an address, or no text at all."""
        with pytest.raises(InvalidTurnError) as caught:
            gate_id(value, "user_id")
        assert caught.value.field == "user_id"


def _nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


class TestGateObject:
    @pytest.mark.parametrize(
        "value",
        [{}, {"a": [1, -(2**63), 2**63 - 1, 1.5, None, True, "é", {}]}, {"": ""}, _nested(32), {"k": "x" * 65536}],
    )
    def test_json_objects_pass_unchanged(self, value: dict[str, Any]) -> None:
        """Any JSON object within the bounds."""
        assert gate_object(value, "metadata") is value

    @pytest.mark.parametrize(
        ("value", "field"),
        [
            ([], "metadata"),
            ("x", "metadata"),
            ({"a": float("nan")}, "metadata.a"),
            ({"a": [0, float("-inf")]}, "metadata.a.1"),
            ({"a": 2**63}, "metadata.a"),
            ({"a": "\0"}, "metadata.a"),
            ({"a": {"b\0": 1}}, "metadata.a.b\0"),
            ({"a": "x" * 65537}, "metadata.a"),
            ({"k" * 1025: 1}, "metadata." + "k" * 64),
            ({1: 1}, "metadata.1"),
            ({"a": object()}, "metadata.a"),
            ({str(number): number for number in range(257)}, "metadata"),
            ({"a": {str(number): number for number in range(256)}}, "metadata.a"),
            (_nested(33), "metadata" + ".a" * 32),
        ],
    )
    def test_the_place_of_a_fault_is_named(self, value: Any, field: str) -> None:
        """Numbers, strings, keys, depth and count: the path leads to the fault."""
        with pytest.raises(InvalidTurnError) as caught:
            gate_object(value, "metadata")
        assert caught.value.field == field


class TestFlatten:
    def test_text_stays_text(self) -> None:
        """A string has no parts."""
        assert flatten_content("hello", "content") == ("hello", None)

    def test_parts_leave_text_and_typed_placeholders(self) -> None:
        """Text in order; pictures, tools and unknown types as placeholders; the parts are kept as sent."""
        parts = [
            "plain",
            {"type": "text", "text": "first"},
            {"type": "image_url", "image_url": {"url": "data:" + "x" * 3_000_000}},
            {"type": "tool_result", "content": [{"type": "text", "text": "not what the speaker said"}]},
            {"type": "x-new.kind_1"},
            {"type": "output_text", "text": "last"},
        ]
        assert flatten_content(parts, "content") == (
            "plain\nfirst\n[image]\n[tool_result]\n[x-new.kind_1]\nlast",
            parts,
        )

    def test_a_turn_without_text_is_a_placeholder(self) -> None:
        """Only a picture is something, only blank text parts are nothing."""
        assert flatten_content([{"type": "image"}], "content")[0] == "[image]"
        with pytest.raises(InvalidTurnError, match="must not be blank"):
            flatten_content([{"type": "text", "text": " "}, ""], "content")

    @pytest.mark.parametrize(
        ("content", "field"),
        [
            (None, "content"),
            ({"type": "text"}, "content"),
            ([], "content"),
            (["x"] * 257, "content"),
            ([None], "content.0"),
            ([{"type": "text", "text": None}], "content.0.text"),
            ([{"type": "has space"}], "content.0.type"),
            ([{"type": "x" * 65}], "content.0.type"),
            ([{"type": "image", "data": "a\0"}], "content.0.data"),
            ([{"type": "text", "text": "x" * 40_000}] * 2, "content"),
        ],
    )
    def test_wrong_parts_are_named(self, content: Any, field: str) -> None:
        """The position of the part stands in the field; the limit of a turn holds for all parts together."""
        with pytest.raises(InvalidTurnError) as caught:
            flatten_content(content, "content")
        assert caught.value.field == field


class TestBlank:
    @pytest.mark.parametrize("text", ["a", "。", "👍", "\u200bx", "＿", "\ue000"])
    def test_something_to_see_is_not_blank(self, text: str) -> None:
        """One visible character is enough."""
        assert not is_blank(text)


class TestShowName:
    def test_names_can_always_be_encoded(self) -> None:
        """A key that cannot be stored can still be told."""
        assert show_name("\ud800" + "k" * 100) == "?" + "k" * 63
