"""Numbers, addresses and paths of a statement are those of its turns."""

import pytest

from memoryos_pipeline.models.answer_grounding import holds_what_nobody_said


class TestHold:
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("Maya's flat is number 4711.", "My flat is number 12."),
            ("Maya paid 12,500 yen.", "I paid a lot of yen."),
            ("健の部屋は３０５号室です。", "私の部屋は上の階です。"),
            ("민수의 번호는 010-1234-5678이다.", "제 번호는 비밀이에요."),
            ("林小雨住在1204室。", "我住在楼上。"),
            ("Maya keeps it in /home/maya/notes.txt.", "I keep it in my notes."),
            ("Maya's site is https://maya.example/blog.", "I have a site."),
            ("Maya's address is maya@example.org.", "I have an address."),
            ("Maya keeps it in C:\\maya\\notes.txt.", "I keep it in my notes."),
        ],
    )
    def test_what_is_made_up_is_seen(self, content: str, said: str) -> None:
        """A number of three digits or more, an address or a path that no turn has."""
        assert holds_what_nobody_said(content, [said])

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("Maya has 2 dogs.", "I have two dogs."),
            ("Maya paid 12,500 yen.", "I paid 12500 yen."),
            ("Maya paid 12500 yen.", "I paid 12 500 yen."),
            ("健の部屋は305号室です。", "私の部屋は３０５号室です。"),
            ("Maya moved in 2024.", "I moved two years ago."),
            ("민수의 번호는 010-1234-5678이다.", "제 번호는 010-1234-5678이에요."),
            ("Maya keeps it in /home/maya/notes.txt.", "It is /home/maya/notes.txt, as ever."),
            ("Maya likes tea and/or coffee.", "Tea and/or coffee is fine."),
            ("Maya's site is https://maya.example/blog.", "See https://maya.example/blog, please"),
        ],
    )
    def test_what_was_said_passes(self, content: str, said: str) -> None:
        """However it is grouped or however wide; small counts and years are worked out."""
        assert not holds_what_nobody_said(content, [said])

    def test_any_of_the_turns_will_do(self) -> None:
        """A statement on two turns takes its number from either."""
        assert not holds_what_nobody_said("Room 305, code 9981.", ["It is room 305.", "The code is 9981."])
