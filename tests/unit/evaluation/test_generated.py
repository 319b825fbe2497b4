"""The generated talks tell the same in four languages, and are asked about in other words."""

from collections import Counter

import pytest

from memoryos_pipeline.domain.language import detect_language
from memoryos_pipeline.evaluation.generated import LANGUAGES, facts, generated_data, small_talk
from memoryos_pipeline.models.lexical import lexical_terms


class TestGenerate:
    def test_it_is_the_same_every_time(self) -> None:
        """No chance is left: two runs give the same turns and the same questions."""
        assert generated_data() == generated_data()

    def test_every_question_has_its_turns(self) -> None:
        """Evidence exists, ids are unique within a memory, and every fact is told."""
        data = generated_data()
        told = {(turn["user_id"], turn["client_turn_id"]): turn["content"] for turn in data.turns}

        assert len(told) == len(data.turns)
        assert all(question.gold <= data.session_of[question.user_id].keys() for question in data.questions)
        assert all(fact.told in told.values() for lang in LANGUAGES for fact in facts(lang))

    def test_languages_differ_in_nothing_but_language(self) -> None:
        """Same questions by kind, in the same places, and every text in its own script."""
        data = generated_data()
        kinds = [
            Counter(each.category[3:] for each in data.questions if each.category[:2] == lang) for lang in LANGUAGES
        ]
        golds = [
            {each.question_id[3:]: each.gold for each in data.questions if each.category[:2] == lang}
            for lang in LANGUAGES
        ]

        assert all(each == kinds[0] for each in kinds)
        assert all(each == golds[0] for each in golds)
        assert all(detect_language(turn["content"]) == turn["user_id"][-2:] for turn in data.turns)

    @pytest.mark.parametrize("lang", LANGUAGES)
    def test_questions_use_other_words(self, lang: str) -> None:
        """A `near` question keeps a term of what was said; of a `far` one at most a third is in it."""
        for fact in facts(lang):
            said = set(lexical_terms(fact.told, lang))
            near, far = (set(lexical_terms(text.replace("{who}", " "), lang)) for text in (fact.near, fact.far))
            assert near & said, fact.key
            assert len(far & said) <= len(far) / 3, fact.key

    @pytest.mark.parametrize("lang", LANGUAGES)
    def test_small_talk_is_never_twice_the_same(self, lang: str) -> None:
        """Enough sentences for every week, each once."""
        _, chatter = small_talk(lang)

        assert len(set(chatter)) == len(chatter) == 240
