"""`memoryos index`: approximate indexes over vectors, for memories too large to compare every vector of."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memoryos_pipeline.cli.operating import both_roles
from memoryos_pipeline.cli.output import end_with
from memoryos_pipeline.settings import load_settings

if TYPE_CHECKING:
    from memoryos_pipeline.store.approximate import SpaceSize
    from memoryos_pipeline.store.database import Database

app = typer.Typer(help="Show, build and drop the approximate indexes of vector spaces.", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="One JSON line.")]
Space = Annotated[int | None, typer.Option("--space", help="This space, whether or not it pays.")]
LOOK_SECONDS = 2.0


@app.command()
def status(as_json: AsJson = False) -> None:
    """Tell of each vector space how much is in it, whether an index pays, and whether there is one."""
    with both_roles(application_name="memoryos-index") as (owner, ledger):
        spaces = _spaces(owner, ledger)
    _show(spaces, as_json=as_json)


@app.command()
def build(
    space: Space = None,
    memory_mb: Annotated[
        int, typer.Option(min=1, help="Memory that building may take; too little for the graph is slow.")
    ] = 512,
    as_json: AsJson = False,
) -> None:
    """Build the index of each space that would gain by it; everybody goes on reading and writing meanwhile."""
    from memoryos_pipeline.store.approximate import build_index  # noqa: PLC0415 - other commands start without

    console = Console(stderr=True)
    with both_roles(application_name="memoryos-index") as (owner, ledger):
        for each in _chosen(_spaces(owner, ledger), space):
            if each.state != "valid" and (space is not None or _pays(each)):
                with _progress(console, owner, each):
                    build_index(owner, each.space_id, dimensions=each.dimensions, memory_mb=memory_mb)
        spaces = _spaces(owner, ledger)
    _show(spaces, as_json=as_json)


@app.command()
def drop(space: Space = None, as_json: AsJson = False) -> None:
    """Drop the index of each space that does not gain by it, and what is left of interrupted builds."""
    from memoryos_pipeline.store.approximate import drop_index  # noqa: PLC0415

    with both_roles(application_name="memoryos-index") as (owner, ledger):
        for each in _chosen(_spaces(owner, ledger), space):
            if each.state is not None and (space is not None or each.state == "broken" or not _pays(each)):
                drop_index(owner, each.space_id)
        spaces = _spaces(owner, ledger)
    _show(spaces, as_json=as_json)


def _pays(space: "SpaceSize") -> bool:
    from memoryos_pipeline.recall.gather import EXACT_UP_TO  # noqa: PLC0415

    return space.largest_memory > EXACT_UP_TO and space.vectors >= load_settings().hnsw_vectors


def _chosen(spaces: "list[SpaceSize]", space_id: int | None) -> "list[SpaceSize]":
    chosen = [each for each in spaces if space_id in (None, each.space_id)]
    if not chosen and space_id is not None:
        known = ", ".join(str(each.space_id) for each in spaces) or "none yet"
        end_with(Console(stderr=True), f"there is no vector space {space_id}; there are: {known}")
    return chosen


def _spaces(owner: "Database", ledger: "Database") -> "list[SpaceSize]":
    from memoryos_pipeline.store.approximate import list_spaces  # noqa: PLC0415
    from memoryos_pipeline.store.keys import list_tenants  # noqa: PLC0415

    return list_spaces(owner, [tenant.tenant_id for tenant in list_tenants(owner, ledger)])


@contextmanager
def _progress(console: Console, owner: "Database", space: "SpaceSize") -> Iterator[None]:
    """Say what is built and how far it is, until it is done."""
    from memoryos_pipeline.store.approximate import read_progress  # noqa: PLC0415

    done = threading.Event()

    def look() -> None:
        while not done.wait(LOOK_SECONDS):
            if found := read_progress(owner):
                percent = "" if found.percent is None else f", {found.percent} % read"
                status.update(f"{title}: {found.phase}{percent}")

    title = f"space {space.space_id}, {space.vectors} vectors of {escape(space.model)}"
    with console.status(title) as status:
        looking = threading.Thread(target=look)
        looking.start()
        try:
            yield
        finally:
            done.set()
            looking.join()


def _row(space: "SpaceSize") -> dict[str, Any]:
    return {
        "space_id": space.space_id, "model": space.model, "dimensions": space.dimensions, "vectors": space.vectors,
        "largest_memory": space.largest_memory, "pays": _pays(space), "index": space.state,
        "index_bytes": space.size_bytes,
    }  # fmt: skip


def _show(spaces: "list[SpaceSize]", *, as_json: bool) -> None:
    rows = [_row(space) for space in spaces]
    if as_json:
        typer.echo(json.dumps({"spaces": rows}, ensure_ascii=False))
        return
    table = Table("space", "model", "dimensions", "vectors", "largest memory", "an index pays", "index")
    for row in rows:
        size = f" ({row['index_bytes'] / 2**20:.0f} MB)" if row["index"] else ""
        table.add_row(
            str(row["space_id"]), escape(row["model"]), str(row["dimensions"]), str(row["vectors"]),
            str(row["largest_memory"]), "yes" if row["pays"] else "no", f"{row['index'] or 'none'}{size}",
        )  # fmt: skip
    Console().print(table)
