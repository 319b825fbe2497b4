"""`memoryos pin`, `unpin`, `revise`, `forget`, `forgetting`: keep, change or drop a statement, see what is to go."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.cli.show import Row, fetch, send, show_answer
from memoryos_pipeline.domain.paths import segment

KnowledgeId = Annotated[str, typer.Argument(help="The statement's id, as `memoryos show knowledge` lists it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def pin(knowledge_id: KnowledgeId, as_json: AsJson = False) -> None:
    """Keep a statement whatever its weight, until it is unpinned."""
    _change("PUT", knowledge_id, ("It is pinned: nothing but a person takes it.", "It was pinned already."), as_json)


def unpin(knowledge_id: KnowledgeId, as_json: AsJson = False) -> None:
    """Let a pinned statement fade, from now on."""
    _change("DELETE", knowledge_id, ("It fades from now on.", "It was not pinned."), as_json)


def forget(knowledge_id: KnowledgeId, as_json: AsJson = False) -> None:
    """Forget a statement now, with what it replaced; `memoryos restore` brings it back within its grace period."""
    answer = send("DELETE", f"/v1/knowledge/{segment(knowledge_id)}", {})
    if as_json:
        typer.echo(json.dumps(answer))
    elif answer["forgotten"]:
        typer.echo(f"It is in no search any more; `memoryos restore {knowledge_id}` brings it back.")
    else:
        typer.echo("It was forgotten already.")


def revise(
    knowledge_id: KnowledgeId,
    content: Annotated[str, typer.Argument(help="What it says from now on.")],
    as_json: AsJson = False,
) -> None:
    """Let a statement say something else from now on; what it said becomes history, its sources stay."""
    answer = send("PATCH", f"/v1/knowledge/{segment(knowledge_id)}", {"content": content})
    if as_json:
        typer.echo(json.dumps(answer))
    elif answer["changed"]:
        typer.echo(
            f"It is {answer['knowledge_id']} now; `memoryos conflicts undo {answer['verdict_id']}` takes it back."
        )
    else:
        typer.echo("It says that already.")


def forgetting(
    user_id: Annotated[str, typer.Option("--user", help="Whose memory.")],
    agent_id: Annotated[str, typer.Option("--agent", help="With which agent it was made.")] = "default",
    limit: Annotated[int, typer.Option(min=1, max=500, help="Rows at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show what a sweep would forget now. A dry run: nothing is changed."""
    answer = fetch("/v1/forgetting", {"user_id": user_id, "agent_id": agent_id, "limit": limit})
    show_answer(answer, as_json=as_json, present=_show)


def _change(method: str, knowledge_id: str, sentences: tuple[str, str], as_json: bool) -> None:
    answer = send(method, f"/v1/knowledge/{segment(knowledge_id)}/pin", {})
    typer.echo(json.dumps(answer) if as_json else sentences[0 if answer["changed"] else 1])


def _show(console: Console, answer: Row) -> None:
    console.print(
        f"{answer['would_forget']} of {answer['live']} statements would be forgotten, "
        f"{answer['would_delete']} forgotten ones deleted for good."
    )
    if answer["braked"]:
        console.print("The brake is on: that is too much of this memory to be believed, so nothing is taken.")
    if answer["on_hold"]:
        console.print("The tenant is on hold: nothing is taken.")
    if answer["knowledge"]:
        table = Table("due", "kind", "content")
        for row in answer["knowledge"]:
            due = min(moment for moment in (row["forget_at"], row["expires_at"]) if moment)
            table.add_row(due[:16].replace("T", " "), row["kind"], row["content"])
        console.print(table)
