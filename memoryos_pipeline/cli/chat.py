"""`memoryos chat`: a conversation that is remembered. Without a language model it shows what would be remembered."""

import json
import secrets
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from memoryos_pipeline.cli.ask import Agent, AsJson, User, post


def chat(
    user_id: User,
    agent_id: Agent = "default",
    conversation_id: Annotated[
        str | None, typer.Option("--conversation", help="Go on with this one; by default a new one begins.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Talk; both sides are recorded. An empty line or Ctrl-D ends it."""
    console = Console(stderr=as_json)
    conversation = conversation_id or f"chat-{secrets.token_hex(4)}"
    console.print(f"Conversation {conversation}; an empty line ends it.", style="dim", highlight=False)
    while said := _listen(console, user_id):
        body = {"query": said, "user_id": user_id, "agent_id": agent_id, "conversation_id": conversation}
        answer = post("/v1/answer", body, repeat=False)
        if as_json:
            typer.echo(json.dumps(answer, ensure_ascii=False))
        else:
            _reply(console, answer, agent_id)


def _listen(console: Console, name: str) -> str:
    try:
        return console.input(f"[bold]{escape(name)}>[/] ").strip()
    except (EOFError, KeyboardInterrupt):
        console.print()
        return ""


def _reply(console: Console, answer: dict[str, Any], name: str) -> None:
    if answer["answer"] is None:
        console.print(f"({answer['reason']}) What is remembered:", style="yellow", markup=False)
        console.print(answer["context"] or "nothing yet", markup=False, highlight=False)
        return
    console.print(f"[bold]{escape(name)}>[/] {escape(answer['answer'])}", highlight=False)
    for item in answer["sources"]:
        console.print(f"  {item['line']}", style="dim", markup=False, highlight=False)
