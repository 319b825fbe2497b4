"""The `memoryos` command: one Typer application, one function a verb."""

import sys

import typer

from memoryos_pipeline.cli import conflicts, dead, evaluate, index, key, policy, work
from memoryos_pipeline.cli.ask import context, search
from memoryos_pipeline.cli.bench import bench
from memoryos_pipeline.cli.bench_faults import faults as bench_faults
from memoryos_pipeline.cli.bench_ledger import ledger as bench_ledger
from memoryos_pipeline.cli.bench_recall import recall as bench_recall
from memoryos_pipeline.cli.bench_sweep import sweep as bench_sweep
from memoryos_pipeline.cli.chat import chat
from memoryos_pipeline.cli.clock import clock
from memoryos_pipeline.cli.demo import demo
from memoryos_pipeline.cli.doctor import doctor
from memoryos_pipeline.cli.env import env
from memoryos_pipeline.cli.eval_ablation import ablation as eval_ablation
from memoryos_pipeline.cli.eval_conflicts import conflicts as eval_conflicts
from memoryos_pipeline.cli.eval_conflicts import corpus
from memoryos_pipeline.cli.ingest import ingest
from memoryos_pipeline.cli.pin import forget, forgetting, pin, revise, unpin
from memoryos_pipeline.cli.processes import api, beat, migrate, relay, worker
from memoryos_pipeline.cli.reembed import reembed
from memoryos_pipeline.cli.restore import restore
from memoryos_pipeline.cli.show import show
from memoryos_pipeline.cli.simulate import simulate
from memoryos_pipeline.cli.sql import sql
from memoryos_pipeline.cli.status import status
from memoryos_pipeline.cli.up import up
from memoryos_pipeline.cli.work import wait
from memoryos_pipeline.settings import SettingsError

app = typer.Typer(
    name="memoryos",
    help="Long-term memory for LLM agents, as a pipeline you can audit.",
    no_args_is_help=True,
)
COMMANDS = (
    up, demo, env, status, ingest, search, context, chat, show, revise, forget, restore, pin, unpin, forgetting,
    simulate, sql, doctor, clock, reembed, wait, migrate, api, worker, relay, beat,
)  # fmt: skip
for command in COMMANDS:
    app.command()(command)
app.add_typer(key.app, name="key")
app.add_typer(policy.app, name="policy")
app.add_typer(dead.app, name="dead")
app.add_typer(index.app, name="index")
app.add_typer(work.app, name="work")
app.add_typer(conflicts.app, name="conflicts")
app.add_typer(corpus, name="corpus")
bench.command(name="recall")(bench_recall)
bench.command(name="ledger")(bench_ledger)
bench.command(name="sweep")(bench_sweep)
bench.command(name="faults")(bench_faults)
app.add_typer(bench, name="bench")
evaluate.app.command(name="conflicts")(eval_conflicts)
evaluate.app.command(name="ablation")(eval_ablation)
app.add_typer(evaluate.app, name="eval")

INTERRUPTED = 130
"""What shells expect of a command that Ctrl-C ended."""


def main() -> None:
    """Run the command; a wrong setting and Ctrl-C end it with a sentence, not a traceback."""
    try:
        app()
    except SettingsError as error:
        sys.stderr.write(f"memoryos: {error}\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        sys.stderr.write("memoryos: stopped\n")
        raise SystemExit(INTERRUPTED) from None
