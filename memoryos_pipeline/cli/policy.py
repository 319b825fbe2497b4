"""`memoryos policy`: which policy is in force and what it means, in words; setting another one; comparing two."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.cli.show import fetch, send
from memoryos_pipeline.domain.paths import segment

app = typer.Typer(help="How memory moves and fades: presets, and changes to them.", no_args_is_help=True)
User = Annotated[str | None, typer.Option("--user", help="Of this user; without, of the whole tenant.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON line, as the API answered.")]


@app.command()
def show(
    preset: Annotated[str | None, typer.Argument(help="A preset, instead of what is in force.")] = None,
    user_id: User = None,
    everything: Annotated[bool, typer.Option("--all", help="Every setting, not only the words.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the policy in force, or a preset: half-lives and lifetimes in words."""
    answer = fetch(f"/v1/policy/presets/{segment(preset)}") if preset else fetch("/v1/policy", _of(user_id))
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
        return
    console = Console()
    console.print(_headline(answer), style="bold", highlight=False, markup=False)
    for topic, sentence in answer["words"].items():
        console.print(f"  {topic:<8} {sentence}", highlight=False, markup=False, soft_wrap=True)
    changes = answer["changed_from_preset"]
    if changes:
        console.print(_differences(changes, ("setting", f"preset {answer['preset']}", "here")))
    if everything:
        console.print(_settings(answer["settings"]))


@app.command(name="set")
def put(
    settings: Annotated[list[str] | None, typer.Argument(help="Changes, as name=value.")] = None,
    preset: Annotated[str | None, typer.Option("--preset", help="Begin with this preset.")] = None,
    user_id: User = None,
    as_json: AsJson = False,
) -> None:
    """Put the next version in force; what is remembered stays, what happens to it from now on is new."""
    from memoryos_pipeline.domain.policies_presets import InvalidPolicyError, parse_setting  # noqa: PLC0415

    if not settings and preset is None:
        end_with(Console(stderr=True), "say what to change: name=value, or --preset NAME")
    try:
        changes = dict(parse_setting(each) for each in settings or [])
    except InvalidPolicyError as error:
        end_with(Console(stderr=True), str(error))
    answer = send("PUT", "/v1/policy", {**_of(user_id), **({"preset": preset} if preset else {}), "settings": changes})
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
        return
    console = Console()
    console.print(_headline(answer), style="bold", highlight=False, markup=False)
    if answer["changed"]:
        console.print(_differences(answer["changed"], ("setting", "before", "now")))
    else:
        console.print("Nothing is different from before.")


@app.command()
def diff(
    first: Annotated[str, typer.Argument(help="A preset, or `now` for what is in force.")],
    second: Annotated[str, typer.Argument(help="Another one.")] = "now",
    user_id: User = None,
    as_json: AsJson = False,
) -> None:
    """Compare two presets, or one with what is in force, setting by setting and in words."""
    old, new = (_named(name, user_id) for name in (first, second))
    settings = _pairs(old["settings"], new["settings"])
    words = _pairs(old["words"], new["words"])
    if as_json:
        typer.echo(json.dumps({"settings": settings, "words": words}, ensure_ascii=False))
    elif settings:
        Console().print(_differences(settings, ("setting", first, second)))
        Console().print(_differences(words, ("", first, second)))
    else:
        typer.echo(f"{first} and {second} are the same")


def _named(name: str, user_id: str | None) -> dict[str, Any]:
    return fetch("/v1/policy", _of(user_id)) if name == "now" else fetch(f"/v1/policy/presets/{segment(name)}")


def _of(user_id: str | None) -> dict[str, str]:
    return {} if user_id is None else {"user_id": user_id}


def _pairs(old: dict[str, Any], new: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: [old[name], new[name]] for name in old if old[name] != new[name]}


def _headline(answer: dict[str, Any]) -> str:
    if "in_force_for" not in answer:
        return f"preset {answer['preset']}"
    version = f"version {answer['version']}" if answer["version"] else "nobody has set one"
    return f"in force for {answer['in_force_for']}: preset {answer['preset']}, {version}"


def _differences(pairs: dict[str, list[Any]], head: tuple[str, str, str]) -> Table:
    table = Table(*head)
    for name, (old, new) in pairs.items():
        table.add_row(name, _said(old), _said(new))
    return table


def _settings(settings: dict[str, Any]) -> Table:
    from dataclasses import fields  # noqa: PLC0415

    from memoryos_pipeline.domain.policies import Policy  # noqa: PLC0415

    table = Table("setting", "value", "meaning")
    for each in fields(Policy):
        table.add_row(each.name, _said(settings.get(each.name)), each.metadata["says"])
    return table


def _said(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
