"""Who a question means, and what is left of it without the names."""

import pytest

from memoryos_pipeline.recall.participants import find_participants

FRIENDS = [("Caroline", "user"), ("Melanie", "user")]
CHAT = [("Maya", "user"), ("Companion", "assistant")]


class TestFindParticipants:
    @pytest.mark.parametrize(
        ("question", "speakers", "actor", "without"),
        [
            ("When did Caroline's sister move?", FRIENDS, "caroline", "When did sister move?"),
            ("What does Mel paint?", FRIENDS, "melanie", "What does paint?"),
            ("what does CAROLINE paint", FRIENDS, "caroline", "what does paint"),
            (
                "美咲さんはどこに住んでいる？",
                [("美咲", "user"), ("健太", "user")],
                "美咲",
                "どこに住んでいる？",
            ),
            ("민준 씨는 뭐 해?", [("민준", "user"), ("서연", "user")], "민준", None),
            ("李明在哪里工作？", [("李明", "user"), ("王芳", "user")], "李明", "在哪里工作？"),
            ("What is my job?", CHAT, "maya", "What is my job?"),
            ("What did you recommend?", CHAT, "companion", "What did you recommend?"),
        ],
    )
    def test_one_person_is_meant(
        self, question: str, speakers: list[tuple[str, str]], actor: str, without: str | None
    ) -> None:
        """Names with possessives, nicknames and honorifics, and pronouns, lead to the one speaker."""
        found = find_participants(question, speakers)

        assert found.actor == actor
        assert without is None or found.without_names == without

    @pytest.mark.parametrize(
        "question", ["What do Caroline and Melanie share?", "What happened in June?", "Is carolines a word?"]
    )
    def test_nobody_or_several(self, question: str) -> None:
        """Two names, no name, or a name inside a word give no actor."""
        assert find_participants(question, FRIENDS).actor is None

    def test_generic_names_are_words(self) -> None:
        """A speaker called user is not somebody a question names."""
        found = find_participants("Which user spoke?", [("user", "user"), ("assistant", "assistant")])

        assert (found.actor, found.without_names) == (None, "Which user spoke?")

    def test_a_question_of_names_alone_stays(self) -> None:
        """Where nothing would be left, the question is kept."""
        assert find_participants("Caroline?", FRIENDS).without_names == "Caroline?"

    def test_the_same_name_twice_is_one_person(self) -> None:
        """Spellings that differ in case only are one speaker."""
        assert find_participants("What did Maya say?", [("Maya", "user"), ("maya", "user")]).actor == "maya"

    @pytest.mark.parametrize(
        ("question", "speakers", "actor"),
        [
            ("What does Melany paint?", FRIENDS, "melanie"),
            ("Where did Carolien move?", FRIENDS, "caroline"),
            ("What did Jose cook?", [("José", "user"), ("Ana", "user")], "josé"),
            ("ミサキはどこに住んでいる？", [("みさき", "user"), ("健太", "user")], "みさき"),
            ("健太さんの趣味は？", [("田中健太", "user"), ("佐藤美咲", "user")], "田中健太"),
            ("민호는 뭐 해?", [("김민호", "user"), ("이서연", "user")], "김민호"),
            ("志明在哪里工作？", [("王志明", "user"), ("李芳", "user")], "王志明"),
        ],
    )
    def test_a_name_is_known_by_other_spellings(
        self, question: str, speakers: list[tuple[str, str]], actor: str
    ) -> None:
        """A slip, an accent, the other kana, or the given name alone still means that speaker."""
        assert find_participants(question, speakers).actor == actor

    @pytest.mark.parametrize(
        ("question", "speakers"),
        [
            ("What did Joan cook?", [("John", "user"), ("Ana", "user")]),
            ("What did Kristan say?", [("Kristen", "user"), ("Kristin", "user")]),
            ("민호는 뭐 해?", [("김민호", "user"), ("박민호", "user")]),
            ("Where is the melanin?", FRIENDS),
        ],
    )
    def test_a_guess_between_two_is_none(self, question: str, speakers: list[tuple[str, str]]) -> None:
        """Short names, names as near to two speakers, and words that are no names mean nobody."""
        assert find_participants(question, speakers).actor is None
