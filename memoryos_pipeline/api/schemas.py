"""What the bodies of ingest look like, for the OpenAPI document. `domain.turn_body` is what checks them."""

from typing import Any

from memoryos_pipeline.domain.text_gate import MAX_ID_CHARACTERS, MAX_KEYS, MAX_PARTS, MAX_TEXT_BYTES
from memoryos_pipeline.domain.turn_body import DEFAULT_AGENT, KINDS, MAX_TURNS, ROLES

Schema = dict[str, Any]


def _name(description: str, **more: Any) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": MAX_ID_CHARACTERS, "description": description, **more}


PART: Schema = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"type": "string"}, "text": {"type": "string"}},
    "additionalProperties": True,
    "description": "A text part, or any other type: it is kept, and leaves a placeholder such as [image] in the text.",
}
CONTENT: Schema = {
    "description": f"Text of at most {MAX_TEXT_BYTES} bytes of UTF-8, not blank; or a list of parts.",
    "oneOf": [
        {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_BYTES},
        {"type": "array", "minItems": 1, "maxItems": MAX_PARTS, "items": {"oneOf": [{"type": "string"}, PART]}},
    ],
}
TURN: Schema = {
    "type": "object",
    "title": "Turn",
    "required": ["user_id", "conversation_id", "client_turn_id", "role", "content", "occurred_at"],
    "additionalProperties": False,
    "properties": {
        "user_id": _name("Whose memory this is."),
        "agent_id": _name("Which agent remembers.", default=DEFAULT_AGENT),
        "conversation_id": _name("The conversation, as the caller names it."),
        "client_turn_id": _name("The turn, as the caller names it: sending it again changes nothing."),
        "role": {"enum": list(ROLES)},
        "speaker": _name("Who speaks; by default the user or the agent."),
        "name": _name("The same as speaker."),
        "content": CONTENT,
        "occurred_at": {"type": "string", "format": "date-time", "description": "ISO 8601 with an offset."},
        "metadata": {"type": "object", "additionalProperties": True, "maxProperties": MAX_KEYS, "default": {}},
        "kind": {"enum": list(KINDS), "description": "By default system for the role system, else normal."},
    },
}
TURNS: Schema = {
    "type": "object",
    "title": "Turns",
    "required": ["turns"],
    "additionalProperties": False,
    "properties": {"turns": {"type": "array", "minItems": 1, "maxItems": MAX_TURNS, "items": TURN}},
}
CONVERSATION_FIELDS: Schema = {name: TURN["properties"][name] for name in ("user_id", "agent_id", "conversation_id")}
CONVERSATION: Schema = {
    "type": "object",
    "title": "ConversationName",
    "required": ["user_id", "conversation_id"],
    "additionalProperties": False,
    "properties": CONVERSATION_FIELDS,
}
RECEIPT_QUERY: Schema = {
    "type": "object",
    "title": "ReceiptQuery",
    "required": ["user_id", "conversation_id", "client_turn_ids"],
    "additionalProperties": False,
    "properties": {
        **CONVERSATION_FIELDS,
        "client_turn_ids": {
            "type": "array", "minItems": 1, "maxItems": MAX_TURNS, "items": TURN["properties"]["client_turn_id"],
        },
    },
}  # fmt: skip
RECEIPT: Schema = {
    "type": "object",
    "title": "Receipt",
    "required": ["client_turn_id", "turn_id", "conversation_id", "seq", "position", "body_sha256", "duplicate"],
    "properties": {
        "client_turn_id": {"type": "string"},
        "turn_id": {"type": "string", "format": "uuid"},
        "conversation_id": {"type": "string"},
        "seq": {"type": "integer", "minimum": 1, "description": "Place in the conversation, without gaps."},
        "position": {"type": "integer", "description": "Where the event feed stands after this turn."},
        "body_sha256": {"type": "string", "description": "Hash of the body that was recorded under this key."},
        "duplicate": {"type": "boolean", "description": "Whether the turn was recorded before this request."},
    },
}
RECEIPTS: Schema = {
    "type": "object",
    "title": "Receipts",
    "required": ["turns", "position"],
    "properties": {
        "turns": {"type": "array", "items": RECEIPT},
        "position": {"type": ["integer", "null"], "description": "The greatest position among the turns."},
    },
}
ERROR: Schema = {
    "type": "object",
    "title": "Error",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "field"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "field": {"type": ["string", "null"], "description": "Which field is wrong, e.g. turns.3.role."},
            },
        }
    },
}
REFUSALS = {
    400: "Not JSON, not UTF-8, or not gzip.",
    401: "The API key is missing or unknown.",
    403: "The API key lacks the scope.",
    404: "There is no such thing in this tenant.",
    408: "The body did not arrive in time.",
    410: "The user was erased.",
    413: "The body is too large.",
    415: "The content encoding is not known.",
    422: "A field cannot be stored, or the client_turn_id stands for another body.",
    503: "The database does not answer; nothing was stored, or it is unknown: send it again.",
}


def takes(schema: Schema) -> Schema:
    """Return `openapi_extra` for a route whose JSON body is `schema`."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def answers(status: int, schema: Schema, description: str) -> dict[int | str, Schema]:
    """Return the `responses` of a route: one success and every refusal."""
    refusals: dict[int | str, Schema] = {code: _response(ERROR, sentence) for code, sentence in REFUSALS.items()}
    return {status: _response(schema, description), **refusals}


def _response(schema: Schema, description: str) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
