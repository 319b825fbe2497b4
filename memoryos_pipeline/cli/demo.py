"""`memoryos demo`: conversations go in as they were lived, become memory, and are asked about."""

import json
import signal
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from memoryos_pipeline.cli.output import end_with

if TYPE_CHECKING:
    from memoryos_pipeline.demo.run import Demonstration

BYTES_PER_MB = 1_000_000


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON line instead of tables.")] = False,
) -> None:
    """Start a whole system, publish the sample conversations as lived, and ask what is remembered."""
    from memoryos_pipeline.client.errors import MemoryClientError  # noqa: PLC0415 - other commands start without
    from memoryos_pipeline.demo.run import run_demo  # noqa: PLC0415
    from memoryos_pipeline.embedded.process import EmbeddedServerError  # noqa: PLC0415

    console = Console(stderr=as_json)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        seen = run_demo(console, verbose=not as_json)
    except (EmbeddedServerError, MemoryClientError) as error:
        end_with(console, str(error))
    except KeyboardInterrupt:
        end_with(console, "stopped; nothing is left behind")
    console.print(f"{seen.seconds:.0f} s, {seen.peak_bytes / BYTES_PER_MB:.0f} MB at the peak.")
    if as_json:
        typer.echo(json.dumps(summary(seen), ensure_ascii=False))
    if not seen.outcome.is_sound:
        raise typer.Exit(1)


def summary(seen: "Demonstration") -> dict[str, Any]:
    """Return the JSON line of a demonstration."""
    tiers, outcome = seen.outcome.tiers, seen.outcome
    return {
        **{name: len(tiers[name]) for name in ("turns", "pages", "segments", "knowledge", "links")},
        "profile_traits": len(tiers["profile"]),
        "lost": outcome.lost,
        "doubled": outcome.doubled,
        "violations": len(outcome.violations),
        "questions": [
            {"question": each.question["question"], "hit": each.hit, "bm25_hit": each.bm25_hit} for each in seen.asked
        ],
        "seconds": round(seen.seconds, 1),
        "pss_mb": round(seen.peak_bytes / BYTES_PER_MB, 1),
    }


def _interrupt(_: int, __: object) -> None:
    raise KeyboardInterrupt
