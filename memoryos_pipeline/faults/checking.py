"""Holds a drained system against its clients' journal: Jepsen's classes, effects that happened twice, invariants."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import entries_of, read_journal
from memoryos_pipeline.readmodels.fault_figures import count_dead, find_doubled, read_names
from memoryos_pipeline.readmodels.invariants import Violation, compare_journal, find_violations

LOOKS, SETTLED_SECONDS = 5, 30.0
REST = "I8"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of everything that was sent. Every list is empty when nothing is wrong."""

    attempted: int
    acknowledged: int
    recovered: int
    """Turns of which it was unknown after some sending whether they were recorded, and they are there, once."""
    lost: tuple[Any, ...]
    unexpected: tuple[Any, ...]
    """Never sent, or refused, and there all the same."""
    duplicated: tuple[Any, ...]
    doubled_effects: tuple[Any, ...]
    violations: tuple[str, ...]
    dead: int

    def wrongs(self) -> dict[str, Any]:
        """Return what is wrong, by its name; empty is good."""
        kept = ("lost", "unexpected", "duplicated", "doubled_effects", "violations", "dead")
        return {name: value for name, value in asdict(self).items() if name in kept and value}


def check(cluster: Cluster, journal: Path | Sequence[Path]) -> Verdict:
    """Compare a drained cluster with the journals of its clients."""
    paths = [journal] if isinstance(journal, Path) else journal
    known = {name: each for path in paths for name, each in read_journal(path).items()}
    with cluster.app.transaction(cluster.tenant_id) as connection:
        compared = compare_journal(connection, cluster.tenant_id, entries_of(known))
        there = read_names(connection, cluster.tenant_id)
        doubled = find_doubled(connection, cluster.tenant_id)
    violations = _violations(cluster)
    with cluster.ledger.across_tenants() as connection:
        dead = count_dead(connection)
    refused = [name for name, each in known.items() if each.outcome == "fail" and not each.seqs and name in there]
    unclear = [name for name, each in known.items() if each.was_unknown or each.outcome == "invoke"]
    return Verdict(
        attempted=len(known),
        acknowledged=sum(bool(each.seqs) for each in known.values()),
        recovered=sum(name in there for name in unclear),
        lost=compared.lost,
        unexpected=(*compared.unexpected, *refused),
        duplicated=compared.doubled,
        doubled_effects=tuple((kind, str(subject)) for kind, subject in doubled),
        violations=tuple(f"{each.invariant}: {each.sentence} ({each.subject})" for each in violations),
        dead=dead,
    )


def _violations(cluster: Cluster) -> list[Violation]:
    """Return what is broken at rest. What a sweep owes between two looks is done first, by whoever works here.

    Work that they do not take up raises TimeoutError; what is owed at every look is returned as broken rest.
    """
    found = _find(cluster)
    for _ in range(LOOKS):
        if not cluster.members or all(each.invariant != REST for each in found):
            break
        cluster.drain(SETTLED_SECONDS)
        found = _find(cluster)
    return found


def _find(cluster: Cluster) -> list[Violation]:
    with cluster.app.transaction(cluster.tenant_id) as connection:
        return find_violations(connection, cluster.tenant_id, at_rest=True)
