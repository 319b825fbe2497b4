"""Days and the whole are summarized, and refreshed when a late page of theirs comes."""

from datetime import timedelta

from memoryos_pipeline.domain.policies import Policy
from tests.builders import START, rows
from tests.conftest import Stack
from tests.lifecycle_builders import Walk, about

DAILY = Policy(rollups="daily")
ROLLUPS = "select period, pages, version, summary from memory_v1.rollups order by period"


class TestRollUp:
    def test_a_late_page_refreshes_its_day_and_the_whole(self, stack: Stack) -> None:
        """MemoryBank never looks at a day again; here another conversation of the first day is in it afterwards."""
        walk = Walk(stack, policy=DAILY)
        walk.warm(*about("tennis"))
        walk.warm(*about("chess"), conversation="c2", start=START + timedelta(days=1))
        walk.warm(*about("judo"), conversation="c3", start=START + timedelta(hours=2))
        found = {period: (pages, version, summary) for period, pages, version, summary in rows(stack, ROLLUPS)}

        assert {period: each[:2] for period, each in found.items()} == {
            "2026-03-01": (2, 2), "2026-03-02": (1, 1), "all": (3, 3),
        }  # fmt: skip
        assert "tennis" in found["2026-03-01"][2]
        assert "judo" in found["2026-03-01"][2]
        assert "chess" in found["all"][2]

    def test_without_the_policy_there_are_none(self, stack: Stack) -> None:
        """The default keeps no rollups."""
        Walk(stack).warm(*about("tennis"))

        assert rows(stack, ROLLUPS) == []
