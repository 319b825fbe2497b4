"""`memoryos restore`: bring a forgotten statement back."""

import json
from typing import Annotated

import typer

from memoryos_pipeline.cli.ask import post
from memoryos_pipeline.domain.paths import segment


def restore(
    knowledge_id: Annotated[str, typer.Argument(help="The statement's id, as `memoryos show history` lists it.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Bring a forgotten statement back within its grace period."""
    answer = post(f"/v1/knowledge/{segment(knowledge_id)}/restore", {})
    if as_json:
        typer.echo(json.dumps(answer))
    elif answer["restored"]:
        typer.echo("It is back, and can be found as soon as it is indexed again.")
    else:
        typer.echo("It was not forgotten; nothing was changed.")
