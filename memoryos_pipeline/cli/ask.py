"""`memoryos search` and `memoryos context`: what is remembered about a question."""

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.reach import NotConnectedError, find_connection
from memoryos_pipeline.settings import load_settings

Query = Annotated[str, typer.Argument(help="What is asked, in any language.")]
User = Annotated[str, typer.Option("--user", help="Whose memory is asked.")]
Agent = Annotated[str, typer.Option("--agent", help="With which agent it was made.")]
Now = Annotated[str | None, typer.Option("--now", help="Ask as of this moment (ISO 8601 with offset).")]
Since = Annotated[str | None, typer.Option("--since", help="Only what happened from this moment on (ISO 8601).")]
Until = Annotated[str | None, typer.Option("--until", help="Only what happened before this moment (ISO 8601).")]
Tiers = Annotated[
    list[str] | None,
    typer.Option("--tier", help="Only hot, warm, archived (turns) or cold (knowledge); may be repeated."),
]
Conversation = Annotated[str | None, typer.Option("--conversation", help="Only what is from this conversation.")]
Speaker = Annotated[str | None, typer.Option("--speaker", help="Only what this person said.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON line, as the API answered.")]
SIGNALS_SHOWN = 3


def search(  # noqa: PLR0913, PLR0917 - one option each
    query: Query,
    user_id: User,
    agent_id: Agent = "default",
    limit: Annotated[int, typer.Option(min=1, max=100, help="Results at most.")] = 10,
    now: Now = None,
    since: Since = None,
    until: Until = None,
    tiers: Tiers = None,
    conversation: Conversation = None,
    speaker: Speaker = None,
    min_score: Annotated[float | None, typer.Option(help="Leave out results below this score.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find turns, pages and knowledge, best first, with why and where from."""
    body = {
        "query": query, "user_id": user_id, "agent_id": agent_id, "limit": limit, "now": now, "since": since,
        "until": until, "tiers": tiers or None, "conversation_id": conversation, "speaker": speaker,
        "min_score": min_score,
    }  # fmt: skip
    _show(post("/v1/search", body), as_json=as_json, show=_show_results)


def context(  # noqa: PLR0913, PLR0917 - one option each
    query: Query,
    user_id: User,
    agent_id: Agent = "default",
    token_budget: Annotated[int, typer.Option("--tokens", min=50, help="Tokens at most.")] = 800,
    now: Now = None,
    since: Since = None,
    until: Until = None,
    tiers: Tiers = None,
    conversation: Conversation = None,
    speaker: Speaker = None,
    as_json: AsJson = False,
) -> None:
    """Print what a prompt would be given about a question."""
    body = {
        "query": query, "user_id": user_id, "agent_id": agent_id, "token_budget": token_budget, "now": now,
        "since": since, "until": until, "tiers": tiers or None, "only_conversation_id": conversation,
        "speaker": speaker,
    }  # fmt: skip
    _show(post("/v1/context", body), as_json=as_json, show=_show_context)


def post(path: str, body: dict[str, Any], *, repeat: bool = True) -> dict[str, Any]:
    """Ask the API this command finds, and end with a sentence when it refuses or is not there."""
    from memoryos_pipeline.client.errors import MemoryClientError  # noqa: PLC0415 - other commands start without
    from memoryos_pipeline.client.http import MemoryClient  # noqa: PLC0415

    given = {name: value for name, value in body.items() if value is not None}
    try:
        reach = find_connection(load_settings())
        with MemoryClient(reach.api_url, reach.api_key) as client:
            answer: dict[str, Any] = client.request("POST", path, json=given, repeat=repeat)
    except (NotConnectedError, MemoryClientError) as error:
        end_with(Console(stderr=True), str(error))
    return answer


def _show(answer: dict[str, Any], *, as_json: bool, show: Callable[[Console, dict[str, Any]], None]) -> None:
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
    else:
        show(Console(), answer)


def _show_results(console: Console, answer: dict[str, Any]) -> None:
    if not answer["results"]:
        console.print("Nothing is remembered about this.")
        return
    table = Table("score", "date", "kind", "what", "why", "from")
    for result in answer["results"]:
        table.add_row(
            f"{result['score']:.2f}",
            result["date"][:10],
            result["knowledge_kind"] or result["kind"],
            escape(f"{result['speaker']}: {result['content']}" if result["speaker"] else result["content"]),
            _why(result["signals"]),
            escape(", ".join(source["client_turn_id"] for source in result["source_turns"])),
        )
    console.print(table)


def _show_context(console: Console, answer: dict[str, Any]) -> None:
    console.print(answer["context"] or "Nothing is remembered about this.", markup=False, highlight=False)
    console.print(f"{answer['tokens']} tokens, {len(answer['items'])} lines", style="dim")


def _why(signals: dict[str, float]) -> str:
    strongest = sorted(signals.items(), key=lambda pair: -abs(pair[1]))[:SIGNALS_SHOWN]
    return ", ".join(f"{name} {share:+.2f}" for name, share in strongest)
