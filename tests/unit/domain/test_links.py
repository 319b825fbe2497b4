"""Links say why they exist and stay few."""

from uuid import UUID

import pytest

from memoryos_pipeline.domain.links import SIMILAR, Link, bare_words, both_ways, similarity_reason, strongest


def _link(target: int, weight: float) -> Link:
    return Link(UUID(int=0), UUID(int=target), SIMILAR, weight, "")


class TestReason:
    def test_a_reason_names_the_shared_terms(self) -> None:
        """Terms of both texts, longest first, at most five; each named once."""
        assert similarity_reason(["tea", "green", "tea"], ["green", "tea", "cup"]) == "shared terms: green, tea"
        many = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"]
        assert similarity_reason(many, many) == "shared terms: ffffff, eeeee, dddd, ccc, bb"

    def test_terms_of_any_script_are_shared(self) -> None:
        """Japanese, Korean and Chinese terms are terms like others."""
        assert similarity_reason(["京都", "住む"], ["京都"]) == "shared terms: 京都"
        assert similarity_reason(["부산"], ["부산", "살다"]) == "shared terms: 부산"
        assert similarity_reason(["北京"], ["北京"]) == "shared terms: 北京"

    def test_nothing_shared_is_said(self) -> None:
        """A link by vector alone says so."""
        assert similarity_reason(["tea"], ["coffee"]) == "near in meaning, no shared term"


class TestCap:
    def test_the_weakest_links_are_dropped(self) -> None:
        """Of three links two stay: the strongest."""
        kept = strongest([_link(1, 0.87), _link(2, 0.95), _link(3, 0.9)], cap=2)
        assert [link.weight for link in kept] == [0.95, 0.9]

    def test_ties_are_kept_the_same_way_every_time(self) -> None:
        """Equal weights are ordered by id, whatever order they came in."""
        links = [_link(3, 0.9), _link(1, 0.9), _link(2, 0.9)]
        assert strongest(links, cap=2) == strongest(links[::-1], cap=2)


class TestMirror:
    def test_a_similar_link_reads_from_both_ends(self) -> None:
        """The mirror swaps the ends and keeps the rest."""
        there, back = both_ways(_link(5, 0.9))
        assert (there.source_id, there.target_id) == (back.target_id, back.source_id)
        assert (there.weight, there.type) == (back.weight, back.type)


class TestBareWords:
    @pytest.mark.parametrize(
        ("content", "bare"),
        [
            ("[2026-05-01] Maya: I saw the vet yesterday.", "I saw the vet ."),
            ("[2026-05-01] Haruto: 昨日、獣医に行きました。", "、獣医に行きました。"),
            ("[2026-05-01] Jiwoo: 어제 병원에 갔어요.", "병원에 갔어요."),
            ("[2026-05-01] Lin: 昨天去了兽医院。", "去了兽医院。"),
            ("Maya has a birthday in May.", "Maya has a birthday in May."),
        ],
    )
    def test_date_speaker_and_calendar_are_left_out(self, content: str, bare: str) -> None:
        """What every dated statement has links nothing; the words of the statement itself stay."""
        actor = content.partition("] ")[2].partition(":")[0] or "Maya"
        assert " ".join(bare_words(content, actor).split()) == bare
