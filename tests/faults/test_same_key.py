"""One key, many senders at once, over HTTP and over the queue: one turn, one number, and one body."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from memoryos_pipeline.stages.parts import Parts
from memoryos_pipeline.store.database import Database
from memoryos_pipeline.store.tenants import mint_key
from tests.acceptance.conversations import long_conversation
from tests.builders import rows
from tests.conftest import Stack
from tests.faults.crew import fresh_seed
from tests.processes import served_api
from workers.ingest import receive

SENDERS = 100
AT_ONCE = 25
RECORDED = "select client_turn_id, seq, content from memoryos.turn order by seq"
EVENTS = "select sum(amount) from memoryos.event where kind = 'turns_recorded'"


@pytest.fixture
def system(stack: Stack) -> Any:
    """Parts with room for many senders, and a key."""
    database = Database(stack.url("app"), pool_size=AT_ONCE)
    yield Parts(database, None, None), mint_key(stack.owner, stack.tenant_id)  # type: ignore[arg-type]
    database.dispose()


class TestSameKey:
    def test_a_hundred_senders_make_one_turn(self, stack: Stack, system: Any) -> None:
        """Half of them by the queue: every answer is 202 with the same number, and one turn is there."""
        parts, key = system
        turn = long_conversation(1, lang="ko")[0]
        payload: dict[str, object] = {"v": 1, "api_key": key, "turns": [turn]}
        headers = {"authorization": f"Bearer {key}"}
        with served_api(parts) as url, httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60) as http:

            def send(n: int) -> tuple[int, int] | None:
                if n % 2:
                    receive(parts, payload)
                    return None
                answer = http.post("/v1/turns", json=turn)
                return answer.status_code, answer.json()["turns"][0]["seq"]

            with ThreadPoolExecutor(AT_ONCE) as threads:
                answers = [told for told in threads.map(send, range(SENDERS)) if told]

        assert answers == [(202, 1)] * (SENDERS // 2)
        assert rows(stack, RECORDED) == [(turn["client_turn_id"], 1, turn["content"])]
        assert rows(stack, EVENTS) == [(1,)]

    def test_two_bodies_race_and_one_is_the_turn(self, stack: Stack, system: Any) -> None:
        """Whoever wins is told 202, all others with that body too; everybody with the other body is told 422."""
        parts, key = system
        one, *rest = long_conversation(2, lang="zh")
        bodies = [one, {**one, "content": rest[0]["content"]}]
        chance = random.Random(fresh_seed())
        order = [n % 2 for n in range(SENDERS)]
        chance.shuffle(order)
        headers = {"authorization": f"Bearer {key}"}
        with (
            served_api(parts) as url,
            httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60) as http,
            ThreadPoolExecutor(AT_ONCE) as threads,
        ):
            statuses = list(threads.map(lambda n: http.post("/v1/turns", json=bodies[n]).status_code, order))

        ((_, seq, content),) = rows(stack, RECORDED)
        winner = [body["content"] for body in bodies].index(content)
        assert seq == 1
        assert Counter(zip(order, statuses, strict=True)) == {
            (winner, 202): SENDERS // 2,
            (1 - winner, 422): SENDERS // 2,
        }
