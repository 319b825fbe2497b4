"""Anybody who reaches the broker can ring: for rows that are not there, not due, somebody else's, or in no language."""

import json
import random
from contextlib import closing
from typing import Any

import pytest
from celery import Celery
from redis import Redis
from sqlalchemy import text

from memoryos_pipeline.domain.work import QUEUE_OF_KIND
from memoryos_pipeline.faults.checking import check
from memoryos_pipeline.faults.cluster import Cluster
from memoryos_pipeline.faults.journal import ClientJournal
from memoryos_pipeline.faults.load import LANGUAGES, HttpWriter, conversation
from memoryos_pipeline.settings import QUEUES

IDS = 10_000
IDS_IN_A_MESSAGE = 100
DRAIN_SECONDS = 120.0
ODD_ARGUMENTS: list[tuple[list[Any], dict[str, Any]]] = [
    ([], {}),
    ([7], {}),
    (["7"], {}),
    ([[7], "v0", {"attempt": 3}], {}),
    ([], {"work_id": 7}),
    ([[]], {"work_ids": [7]}),
    ([[[[]]]], {}),
    ([[None, True, -1, 2**80, 1.5, "1 or 1=1", {"id": 1}]], {}),
    ([[1] * 5000], {}),
    ([["\ud800\x00" * 10]], {}),
]
"""What older, newer and foreign code might send."""
ODD_TASKS = ["memoryos.summarise", "memoryos.", "celery.backend_cleanup", "os.system", "x" * 5000]
ENTRY: dict[str, Any] = {
    "body": "W1tdLCB7fSwge31d",
    "content-type": "application/json",
    "content-encoding": "utf-8",
    "headers": {"task": "memoryos.embed", "id": "x", "lang": "py"},
    "properties": {
        "delivery_tag": "forged",
        "delivery_info": {"exchange": "", "routing_key": "embed"},
        "body_encoding": "base64",
        "correlation_id": "x",
    },
}
"""An entry as Celery writes it, with nothing in it."""
ODD_ENTRIES: list[Any] = [
    *([], None, 7, "x", {}, {"properties": {}}),
    {**ENTRY, "body": "????"},
    {**ENTRY, "body": 7},
    {**ENTRY, "body": None},
    {**ENTRY, "content-type": "application/x-python-serialize", "body": "gASVBQ=="},
    {**ENTRY, "content-encoding": "klingon"},
    {**ENTRY, "headers": None},
    {**ENTRY, "headers": []},
    *({**ENTRY, "properties": {**ENTRY["properties"], name: None}} for name in ENTRY["properties"]),
    {**ENTRY, "properties": {**ENTRY["properties"], "body_encoding": "rot13"}},
    {**ENTRY, "properties": {**ENTRY["properties"], "delivery_tag": ["a", "list"]}},
    *(
        {**ENTRY, "headers": {**ENTRY["headers"], name: value}}
        for name in ("task", "id", "eta", "expires", "timelimit", "retries", "group", "root_id", "parent_id", "stamps",
                     "origin", "ignore_result", "argsrepr", "replaced_task_nesting", "compression", "lang")
        for value in ("\x00klingon", ["a", {"list": 1}], -1)
    ),
]  # fmt: skip
ODD_BODIES = [
    b"\x80\x04]\x94.",
    b"not json",
    b"",
    b"{",
    b"\xff\xfe",
    *(json.dumps(each).encode() for each in ODD_ENTRIES),
]
"""What lies in a queue when somebody else writes to it."""
SNAPSHOT = text("""
    select work_id, kind, state, generation, fence, attempts, executions, deferrals, run_after, finished_at
      from memoryos.work order by work_id
""")
POSTPONE = text("""
    update memoryos.work set state = 'ready', finished_at = null, run_after = clock_timestamp() + interval '1 hour'
     where work_id in (select work_id from memoryos.work where state = 'done' order by work_id limit 5)
""")
FINISH = text("update memoryos.work set state = 'done', finished_at = run_after where state = 'ready'")


def _ledger(cluster: Cluster) -> list[tuple[Any, ...]]:
    with cluster.ledger.across_tenants() as connection:
        return [tuple(row) for row in connection.execute(SNAPSHOT)]


def _run(cluster: Cluster, statement: Any) -> None:
    with cluster.ledger.across_tenants() as connection:
        connection.execute(statement)


def _celery(cluster: Cluster) -> Celery:
    app = Celery("forger", broker=cluster.ground.valkey.url)
    app.conf.broker_transport_options = {"global_keyprefix": "mem:"}
    return app


def _forge(cluster: Cluster, known: list[int], chance: random.Random) -> int:
    """Ring for thousands of ids, half of them real, on every queue; return how many messages that were."""
    queues = sorted({*QUEUE_OF_KIND.values()})
    ids = [chance.choice(known) if chance.random() < 0.5 else chance.randrange(2**63) for _ in range(IDS)]
    with _celery(cluster) as app:
        for start in range(0, IDS, IDS_IN_A_MESSAGE):
            queue = chance.choice(queues)
            app.send_task(f"memoryos.{queue}", args=[ids[start : start + IDS_IN_A_MESSAGE]], queue=queue)
        for args, kwargs in ODD_ARGUMENTS:
            for queue in QUEUES:
                app.send_task(f"memoryos.{queue}", args=args, kwargs=kwargs, queue=queue)
        for name in ODD_TASKS:
            app.send_task(name, args=["id; true"], queue=chance.choice(queues))
    return IDS // IDS_IN_A_MESSAGE + len(ODD_ARGUMENTS) * len(QUEUES) + len(ODD_TASKS)


def _is_quiet(broker: Redis) -> bool:
    return not any(broker.llen(f"mem:{queue}") for queue in QUEUES) and not broker.hlen("mem:unacked")


@pytest.mark.slow
class TestForgedMessages:
    def test_they_change_nothing_and_end_nobody(self, cluster: Cluster, journal: ClientJournal, seed: int) -> None:
        """Thousands of forged rings, odd arguments, foreign tasks and bodies: no row moves, the worker works on."""
        chance = random.Random(seed)
        cluster.add_api().start().ready()
        relay = cluster.add_relay().start()
        worker = cluster.add_worker("worker").start().ready()
        turns = [turn for lang in LANGUAGES for turn in conversation(30, user=f"user-{lang}", lang=lang, seed=seed)]
        with closing(HttpWriter(cluster, journal)) as writer:
            assert writer.send(turns)
        cluster.drain(DRAIN_SECONDS)
        relay.kill(for_good=True)
        _run(cluster, POSTPONE)
        before = _ledger(cluster)

        with Redis.from_url(cluster.ground.valkey.url) as broker:
            sent = _forge(cluster, [row[0] for row in before], chance)
            assert cluster.wait_until(lambda: _is_quiet(broker), seconds=DRAIN_SECONDS)
            for body in ODD_BODIES:
                broker.lpush(f"mem:{chance.choice(QUEUES)}", body)
            assert cluster.wait_until(lambda: _is_quiet(broker), seconds=DRAIN_SECONDS)

        assert sent > 180
        assert _ledger(cluster) == before
        assert worker.starts == 1
        _run(cluster, FINISH)
        relay.start()
        with closing(HttpWriter(cluster, journal)) as writer:
            assert writer.send(conversation(30, user="afterwards", seed=seed))
        cluster.drain(DRAIN_SECONDS)
        assert worker.starts == 1
        assert check(cluster, journal.path).wrongs() == {}
