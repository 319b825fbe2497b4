"""JSON as we accept it: UTF-8, no NaN, no doubled keys, bounded depth and integers."""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from memoryos_pipeline.domain.errors import MemoryosError
from memoryos_pipeline.domain.text_gate import show_name


class InvalidJsonError(MemoryosError):
    """The body is not JSON that can be stored."""

    field = "body"


def load_json(body: bytes) -> Any:
    """Return the value a body holds. Raises InvalidJsonError."""
    try:
        return _decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise InvalidJsonError("the body is not UTF-8") from None
    except RecursionError:
        raise InvalidJsonError("the body is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise InvalidJsonError(f"the body is not JSON: {error.msg} at character {error.pos}") from None
    except ValueError:
        raise InvalidJsonError("the body holds a number with too many digits") from None


class JsonRoute(APIRoute):
    """A route whose body is read by `load_json` before its model checks it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which sees a request that reads JSON as we do."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return handle_strictly


class _JsonRequest(Request):
    async def json(self) -> Any:
        return load_json(await self.body())


def _refuse_constant(name: str) -> None:
    raise InvalidJsonError(f"the body holds {name}, which is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        doubled = next(name for name in names if names.count(name) > 1)
        raise InvalidJsonError(f"the body holds the key {show_name(doubled)!r} twice")
    return found


_decode = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique).decode
