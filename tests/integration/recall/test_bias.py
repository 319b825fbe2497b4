"""Under `bounded_bias` knowledge that nobody uses sinks in rank, and is still found."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from memoryos_pipeline.domain.policies import Policy
from memoryos_pipeline.recall.search import search
from tests.builders_recall import ask, know, recall_parts, remember
from tests.conftest import Stack

AGE = text("""
    update memoryos.knowledge set last_reinforced_at = memoryos.now() - interval '2 years' where content = :old
""")


class TestBias:
    def test_what_nobody_uses_sinks_and_stays(self, stack: Stack) -> None:
        """Two statements equally near: the one of long ago has 0.3 of its score, and the signals still sum to it."""
        remember(stack, ("Maya", "I slept well."), ("Maya", "I slept well again."))
        fresh, old = "Maya likes the marathon in Seoul", "Maya likes the marathon in Busan"
        know(stack, fresh, seq=1)
        know(stack, old, seq=2)
        with stack.app.transaction(stack.tenant_id) as connection:
            connection.execute(AGE, {"old": old})
        plain = recall_parts(stack)
        biased = replace(plain, policy=Policy(forget="bounded_bias"))
        asked = ask("the marathon", kinds=("knowledge",))
        before = {found.content: found.score for found in search(plain, stack.tenant_id, asked).results}
        after = {found.content: found for found in search(biased, stack.tenant_id, asked).results}

        assert after[old].score == pytest.approx(before[old] * 0.3, rel=1e-3)
        assert after[fresh].score == pytest.approx(before[fresh] * 1.5, rel=1e-3)
        assert list(after) == [fresh, old]
        assert all(sum(found.signals.values()) == pytest.approx(found.score) for found in after.values())
