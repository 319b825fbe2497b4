"""The figures of the whole system for a monitor, from SQL as the ledger role. No tenant is named in any of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from memoryos_pipeline.readmodels.scheduled_doctor import last_run
from memoryos_pipeline.store.heartbeats import list_processes
from memoryos_pipeline.store.vigilance import list_alarms, list_paused, read_counters

OPEN = text("""
    select kind,
           count(*) filter (where state = 'ready' and run_after <= clock_timestamp()) as ready,
           count(*) filter (where state = 'ready' and run_after > clock_timestamp()) as waiting,
           count(*) filter (where state = 'leased') as leased,
           count(*) filter (where state = 'leased' and lease_until < clock_timestamp()) as expired,
           count(*) filter (where state = 'dead') as dead,
           cast(coalesce(extract(epoch from clock_timestamp() - min(run_after) filter (
               where state = 'ready' and run_after <= clock_timestamp())), 0) as float8) as oldest
      from (select kind, state, run_after, null as lease_until from memoryos.work where state = 'ready'
            union all
            select kind, state, run_after, lease_until from memoryos.work
             where state = 'leased' and lease_until is not null
            union all
            select kind, state, run_after, null from memoryos.work where state = 'dead') open
     group by kind order by kind
""")
PROVIDERS = text("select provider, phase from memoryos.provider_state order by provider")
SPENT = text("""
    select coalesce(sum(spent), 0) from memoryos.budget where day = cast(clock_timestamp() at time zone 'utc' as date)
""")
COUNTERS = {
    "fenced": "Executions that lost their lease and wrote nothing.",
    "republished": "Work rows rung for again because nobody had taken them.",
    "epoch_lost": "Times the broker was found empty or replaced.",
    "leases_reaped": "Leases that ran out and were taken back.",
}

Labels = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric with its samples: labels and values."""

    name: str
    meaning: str
    kind: str
    samples: tuple[tuple[Labels, float], ...]


def read_figures(connection: Connection) -> list[Figure]:
    """Return every figure, in the order it is shown."""
    return [*_of_work(connection), *_of_processes(connection), *_of_doctor(connection), *_of_providers(connection)]


def render_prometheus(figures: Iterable[Figure]) -> str:
    """Write figures in the text format of Prometheus, version 0.0.4."""
    return "".join(f"{line}\n" for figure in figures for line in _lines(figure))


def _of_work(connection: Connection) -> Iterator[Figure]:
    rows = connection.execute(OPEN).all()
    for column, name, meaning in (
        ("ready", "memoryos_work_ready", "Work rows that are due and not taken yet."),
        ("waiting", "memoryos_work_waiting", "Work rows that wait for a later try."),
        ("leased", "memoryos_work_leased", "Work rows that are being done."),
        ("expired", "memoryos_work_lease_expired", "Work rows whose lease ran out and was not taken back yet."),
        ("dead", "memoryos_work_dead", "Work rows that were given up."),
        ("oldest", "memoryos_work_oldest_ready_age_seconds", "For how long the oldest due row has waited."),
    ):
        yield _gauge(name, meaning, [([("kind", row.kind)], float(getattr(row, column))) for row in rows])
    paused = [([("kind", each.kind)], 1.0) for each in list_paused(connection)]
    yield _gauge("memoryos_kind_paused", "1 while a kind of work is paused.", paused)
    totals = read_counters(connection)
    for name, meaning in COUNTERS.items():
        yield Figure(f"memoryos_{name}_total", meaning, "counter", (((), float(totals.get(name, 0))),))


def _of_processes(connection: Connection) -> Iterator[Figure]:
    silence: dict[str, float] = {}
    for each in list_processes(connection):
        silence[each.role] = min(silence.get(each.role, each.silent_seconds), each.silent_seconds)
    samples = [([("role", role)], seconds) for role, seconds in sorted(silence.items())]
    yield _gauge("memoryos_process_silent_seconds", "Since when no process of a role has shown itself.", samples)
    alarms = [([("name", each.name), ("subject", each.subject)], 1.0) for each in list_alarms(connection)]
    yield _gauge("memoryos_alarm", "1 while something needs a person; `memoryos status` has the sentence.", alarms)


def _of_doctor(connection: Connection) -> Iterator[Figure]:
    run = last_run(connection)
    found = [([("invariant", name)], float(n)) for name, n in sorted(run.violations.items())] if run else []
    yield _gauge("memoryos_invariant_violations", "Violations found by the last scheduled check, by invariant.", found)
    total = [((), float(sum(run.violations.values())))] if run else []
    yield _gauge("memoryos_invariant_violations_sum", "Violations found by the last scheduled check.", total)
    when = [((), run.finished_at.timestamp())] if run else []
    yield _gauge("memoryos_doctor_last_run_timestamp_seconds", "When the last scheduled check ended.", when)


def _of_providers(connection: Connection) -> Iterator[Figure]:
    phases = [([("provider", row.provider), ("phase", row.phase)], 1.0) for row in connection.execute(PROVIDERS)]
    yield _gauge("memoryos_provider_breaker", "1 for the phase a provider's breaker is in.", phases)
    spent = float(connection.execute(SPENT).scalar_one())
    yield _gauge("memoryos_tokens_spent_today", "Tokens of language models spent today (UTC).", [((), spent)])


def _gauge(name: str, meaning: str, samples: Iterable[tuple[Labels, float]]) -> Figure:
    return Figure(name, meaning, "gauge", tuple(samples))


def _lines(figure: Figure) -> Iterator[str]:
    yield f"# HELP {figure.name} {figure.meaning}"
    yield f"# TYPE {figure.name} {figure.kind}"
    for labels, value in figure.samples:
        shown = ",".join(f'{name}="{_escape(text)}"' for name, text in labels)
        yield f"{figure.name}{{{shown}}} {value:.17g}" if shown else f"{figure.name} {value:.17g}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
