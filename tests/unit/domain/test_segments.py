"""Which pages belong together."""

import math
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memoryos_pipeline.domain.everyday import EVERYDAY, everyday_sentences
from memoryos_pipeline.domain.ids import derive_id
from memoryos_pipeline.domain.policies import Policy, Reset
from memoryos_pipeline.domain.segments import (
    MAX_KEYWORDS,
    Segment,
    SegmentPage,
    assign_pages,
    choose_segment,
    cosine,
    jaccard,
    match_score,
    mean_overlap,
    mean_vector,
    move_centroid,
    visit_segments,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
POLICY = Policy()


def _page(name: str, *keywords: str, vector: tuple[float, ...] | None = (1.0, 0.0)) -> SegmentPage:
    return SegmentPage(derive_id("test", name), f"About {name}.", keywords, keywords[:1], vector)


def _pages(count: int, *keywords: str) -> list[SegmentPage]:
    return [_page(f"{keywords}{n}", *keywords) for n in range(count)]


def _ids(pages: list[SegmentPage]) -> list[UUID]:
    return [page.page_id for page in pages]


class TestScore:
    def test_jaccard_and_the_evaluation_variant(self) -> None:
        """{a,b,c} and {b,c,d} share 0.5 of all, 0.667 of each; empty sets share nothing."""
        assert jaccard("abc", "bcd") == 0.5
        assert mean_overlap(set("abc"), set("bcd")) == pytest.approx(0.667, abs=5e-4)
        assert jaccard("", "") == mean_overlap(set(), set("a")) == 0.0

    def test_nearness_and_keywords_add_up(self) -> None:
        """Cosine .45 with Jaccard .20 joins (.65); cosine .59 with none does not."""
        assert match_score(0.45, 0.20) >= POLICY.segment_match
        assert match_score(0.59, 0.0) < POLICY.segment_match

    def test_a_negative_cosine_counts_as_none(self) -> None:
        """Shared keywords are not outweighed by an opposite direction."""
        assert match_score(-0.9, 0.6) == 0.6

    def test_a_vector_without_direction_is_near_nothing(self) -> None:
        """No division by zero, and no NaN that would join everything."""
        assert cosine((0.0, 0.0), (1.0, 0.0)) == 0.0
        assert cosine((3.0, 4.0), (3.0, 4.0)) == pytest.approx(1.0)


class TestChoose:
    def _segment(self, page: SegmentPage) -> Segment:
        return next(iter(assign_pages([page], [], now=NOW, policy=POLICY).changed.values()))

    def test_the_best_fitting_segment_is_chosen(self) -> None:
        """Of two that fit, the better one; of equals, the older one."""
        near, nearer = self._segment(_page("a", vector=(0.8, 0.6))), self._segment(_page("b"))

        assert choose_segment(_page("c"), [near, nearer], match=0.6) is nearer
        newer = self._segment(_page("d"))
        assert choose_segment(_page("c"), [nearer, newer], match=0.6) is nearer
        assert choose_segment(_page("c"), [newer, nearer], match=0.6) is newer

    def test_a_page_that_fits_nowhere_opens_a_segment(self) -> None:
        """Below the threshold there is no choice; exactly at it there is."""
        segment = self._segment(_page("a", vector=(0.6, 0.8)))

        assert choose_segment(_page("c"), [segment], match=0.61) is None
        assert choose_segment(_page("c"), [segment], match=cosine((1.0, 0.0), (0.6, 0.8))) is segment

    def test_without_a_vector_the_keywords_decide(self) -> None:
        """A page without a vector joins by keywords alone."""
        segment = self._segment(_page("a", "tennis", vector=None))

        assert choose_segment(_page("b", "tennis"), [segment], match=0.6) is segment
        assert choose_segment(_page("b", "chess"), [segment], match=0.6) is None


class TestCommonPart:
    def test_what_all_texts_share_makes_nothing_near(self) -> None:
        """Two pages whose vectors agree only in what every text has are not near without that part."""
        shared = (10.0, 0.0, 0.0)
        first, second = (
            SegmentPage(derive_id("test", n), "", (), (), vector, common=shared)
            for n, vector in enumerate([(10.0, 1.0, 0.0), (10.0, 0.0, 1.0)])
        )
        plan = assign_pages([first, second], [], now=NOW, policy=POLICY)

        assert cosine(first.vector or (), second.vector or ()) > 0.98
        assert len(plan.changed) == 2

    def test_each_language_has_as_many_everyday_sentences(self) -> None:
        """English, Japanese, Korean and Chinese are equal; another language gets all of them."""
        assert {lang: len(everyday_sentences(lang)) for lang in EVERYDAY} == dict.fromkeys(("en", "ja", "ko", "zh"), 12)
        assert len(everyday_sentences("und")) == 48
        assert mean_vector([(1.0, 0.0), (0.0, 1.0)]) == [0.5, 0.5]


class TestCentroid:
    def test_it_is_the_direction_of_all_pages(self) -> None:
        """One page to the right and one up point half way; the result is a unit vector."""
        moved = move_centroid((1.0, 0.0), (0.0, 1.0), page_count=1)

        assert moved == pytest.approx([math.sqrt(0.5)] * 2, abs=1e-3)

    def test_old_pages_weigh_more_than_a_new_one(self) -> None:
        """After nine pages one more moves it little; a missing or opposite vector moves it not at all."""
        moved = move_centroid((1.0, 0.0), (0.0, 1.0), page_count=9)

        assert moved is not None
        assert moved[0] > 0.99
        assert move_centroid(None, (0.0, 1.0), page_count=1) == (0.0, 1.0)
        assert move_centroid((1.0, 0.0), None, page_count=1) == (1.0, 0.0)
        assert move_centroid((1.0, 0.0), (-1.0, 0.0), page_count=1) == (1.0, 0.0)


class TestAssign:
    def test_four_fresh_pages_are_distilled_together(self) -> None:
        """Heat 5.0 hands all four over in order, and leaves a heat of at most 1."""
        pages = _pages(4, "tennis")
        plan = assign_pages(pages, [], now=NOW, policy=POLICY)
        (segment,) = plan.changed.values()

        assert [handed.page_id for handed in plan.handed] == _ids(pages)
        assert {handed.cause for handed in plan.handed} == {"heated"}
        assert (segment.heat, segment.l_interaction, segment.page_count, segment.waiting) == (1.0, 0, 4, ())

    def test_no_second_promotion_without_new_pages(self) -> None:
        """After a promotion a hundred visits hand nothing over: nothing is left to distil."""
        plan = assign_pages(_pages(4, "tennis"), [], now=NOW, policy=POLICY)
        (segment,) = plan.changed.values()

        assert visit_segments([(segment, 100, NOW)], now=NOW, policy=POLICY).handed == []

    def test_how_many_pages_come_at_once_makes_no_difference(self) -> None:
        """Eleven pages in one run or one by one: same segments, same order of distillation."""
        pages = [page for pair in zip(_pages(6, "tennis"), _pages(6, "chess", "club"), strict=True) for page in pair]
        vectors = [(1.0, 0.1), (0.1, 1.0)]
        pages = [
            SegmentPage(page.page_id, page.summary, page.keywords, page.topics, vectors[n % 2])
            for n, page in enumerate(pages[:11])
        ]
        together = assign_pages(pages, [], now=NOW, policy=POLICY)
        known: dict[UUID, Segment] = {}
        handed = []
        for page in pages:
            plan = assign_pages([page], list(known.values()), now=NOW, policy=POLICY)
            known |= plan.changed
            handed += plan.handed

        assert known == together.changed
        assert handed == together.handed
        assert len(known) == 2

    def test_the_policy_sealed_hands_every_page_over_at_once(self) -> None:
        """Each page is distilled as soon as it has its segment."""
        pages = _pages(2, "tennis")
        plan = assign_pages(pages, [], now=NOW, policy=Policy(distill_when="sealed"))

        assert [(handed.page_id, handed.cause) for handed in plan.handed] == [
            (page.page_id, "sealed") for page in pages
        ]

    def test_the_policy_cooled_hands_nothing_over(self) -> None:
        """However hot a segment is, its pages wait until they cool."""
        plan = assign_pages(_pages(9, "tennis"), [], now=NOW, policy=Policy(distill_when="cooled"))

        assert plan.handed == []

    def test_keywords_of_a_long_life_stay_bounded(self) -> None:
        """A segment keeps at most 24 keywords, shared ones first."""
        pages = [_page(str(n), "tennis", *(f"word{n}-{i}" for i in range(5))) for n in range(20)]
        (segment,) = assign_pages(pages, [], now=NOW, policy=POLICY).changed.values()

        assert len(segment.keywords) == MAX_KEYWORDS
        assert segment.keywords[0] == "tennis"


class TestVisit:
    def test_a_visit_makes_three_pages_hot(self) -> None:
        """Three fresh pages are 4.0; one visit now makes 5.0 and hands them over."""
        plan = assign_pages(_pages(3, "tennis"), [], now=NOW, policy=POLICY)
        (segment,) = plan.changed.values()
        assert (segment.heat, plan.handed) == (4.0, [])

        visited = visit_segments([(segment, 1, NOW)], now=NOW, policy=POLICY)
        assert len(visited.handed) == 3

    def test_an_old_visit_counts_with_its_age(self) -> None:
        """A visit a day ago adds one, and its recency is 0.3679."""
        plan = assign_pages(_pages(1, "tennis"), [], now=NOW, policy=POLICY)
        (segment,) = plan.changed.values()
        later = NOW + timedelta(days=2)
        (visited,) = visit_segments(
            [(segment, 1, later - timedelta(days=1))], now=later, policy=POLICY
        ).changed.values()

        assert visited.heat == pytest.approx(2.3679, abs=5e-5)


class TestReset:
    @pytest.mark.parametrize(("reset", "visits", "pages"), [("NL", 0, 0), ("L", 3, 0), ("none", 3, 2)])
    def test_what_starts_again_is_the_policys(self, reset: Reset, visits: int, pages: int) -> None:
        """Packaged code resets both counters, the paper new pages only; either way nothing waits any more."""
        policy = Policy(reset_on_extract=reset)
        (segment,) = assign_pages(_pages(2, "tennis"), [], now=NOW, policy=policy).changed.values()
        plan = visit_segments([(segment, 3, NOW)], now=NOW, policy=policy)
        (after,) = plan.changed.values()

        assert [each.cause for each in plan.handed] == ["heated", "heated"]
        assert (after.n_visit, after.l_interaction, after.waiting) == (visits, pages, ())

    def test_the_weights_of_the_evaluation_code(self) -> None:
        """0.8 N + 0.8 L + 0.0001 R: three pages and three visits are not hot, seven together are."""
        policy = Policy(
            segment_visit_weight=0.8, segment_page_weight=0.8, segment_recency_weight=1e-4, segment_recency="constant"
        )
        (segment,) = assign_pages(_pages(3, "tennis"), [], now=NOW, policy=policy).changed.values()

        assert visit_segments([(segment, 3, NOW)], now=NOW, policy=policy).handed == []
        assert len(visit_segments([(segment, 4, NOW)], now=NOW, policy=policy).handed) == 3
