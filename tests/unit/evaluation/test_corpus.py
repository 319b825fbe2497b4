"""The generated lives are reproducible, big enough, and scored by phrases that no rule was written from."""

import pytest

from memoryos_pipeline.evaluation.corpus import LANGUAGES, Corpus, make_corpus
from memoryos_pipeline.evaluation.corpus_phrases import SCORED, Bank, load_phrases, render

LEAST: dict[Bank, int] = {"first": 3, "second": 4, "third": 1}


@pytest.fixture(scope="module", params=LANGUAGES)
def corpus(request: pytest.FixtureRequest) -> Corpus:
    """The first corpus of a language."""
    return make_corpus(request.param, 1)


class TestMake:
    def test_the_same_seed_gives_the_same_lives(self, corpus: Corpus) -> None:
        """Another seed gives others."""
        assert make_corpus(corpus.lang, 1) == corpus
        assert make_corpus(corpus.lang, 2).lines != corpus.lines

    def test_every_denominator_is_above_two_hundred(self, corpus: Corpus) -> None:
        """Changes, compatible pairs and facts, in each language."""
        assert min(len(corpus.changes), len(corpus.compatible), len(corpus.facts)) >= 200

    def test_what_is_changed_was_said_before(self, corpus: Corpus) -> None:
        """A change is later than what it ends, also when that is handed in late."""
        lines = {line.turn_id: line for line in corpus.lines}
        assert all(lines[old].at < lines[new].at for old, new in corpus.changes)
        assert any(lines[old].late for old, _ in corpus.changes)

    def test_turns_are_told_apart(self, corpus: Corpus) -> None:
        """Ids are unique, and lines that say the same share a truth."""
        ids = [line.turn_id for line in corpus.lines]
        truths = [line.truth for line in corpus.lines if line.truth]
        assert len(ids) == len(set(ids))
        assert len(set(truths)) < len(truths)


class TestPhrases:
    @pytest.mark.parametrize("lang", LANGUAGES)
    @pytest.mark.parametrize("bank", SCORED)
    def test_what_is_scored_was_not_written_from(self, lang: str, bank: Bank) -> None:
        """No sentence and no value of a scored bank may be written from; every language tells the same topics."""
        scored, open_to_all = load_phrases(lang, bank), load_phrases(lang, "development")
        assert scored.topics.keys() == load_phrases("en", bank).topics.keys() == open_to_all.topics.keys()
        for name, topic in scored.topics.items():
            written_from = open_to_all.topics[name]
            assert not {*topic.states, *topic.changes} & {*written_from.states, *written_from.changes}
            assert not {*topic.values} & {*written_from.values}
            assert min(len(topic.states), len(topic.changes), len(topic.beside)) >= LEAST[bank]

    @pytest.mark.parametrize("lang", LANGUAGES)
    def test_no_two_scored_banks_share_a_sentence(self, lang: str) -> None:
        """Each bank says everything in its own words."""
        said = [
            sentence
            for bank in SCORED
            for topic in load_phrases(lang, bank).topics.values()
            for sentence in (*topic.states, *topic.changes, *topic.beside)
        ]
        assert len(said) == len(set(said))

    @pytest.mark.parametrize(
        ("template", "value", "said"),
        [
            ("{v:으로} 이사했어요.", "부산", "부산으로 이사했어요."),
            ("{v:으로} 이사했어요.", "서울", "서울로 이사했어요."),
            ("{v:을} 마셔요.", "커피", "커피를 마셔요."),
            ("{v:이에}요.", "교사", "교사예요."),
            ("예전에 {v:이었}어요.", "교사", "예전에 교사였어요."),
            ("{v:이-}야.", "빵", "빵이야."),
            ("{v:이-}야.", "교사", "교사야."),
        ],
    )
    def test_korean_particles_follow_the_ending(self, template: str, value: str, said: str) -> None:
        """A consonant asks for one form, a vowel for the other."""
        assert render(template, "ko", {"v": value}) == said
