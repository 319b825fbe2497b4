"""Dates in statements are resolved from the turn's own time and offset, in four languages."""

from datetime import date, datetime

import pytest

from memoryos_pipeline.domain.statements_dates import resolve_event

NEW_YEAR = datetime.fromisoformat("2025-01-01T00:20:00+09:00")
WEDNESDAY = datetime.fromisoformat("2026-05-13T20:41:00-05:00")


class TestResolveEvent:
    @pytest.mark.parametrize(
        ("text", "day"),
        [
            ("yesterday I started at the new job", "2024-12-31"),
            ("my exam is on Friday", "2025-01-03"),
            ("昨日引っ越した", "2024-12-31"),
            ("내일 수술해요", "2025-01-02"),
            ("下周三出差", "2025-01-08"),
        ],
    )
    def test_the_turns_own_day_counts(self, text: str, day: str) -> None:
        """Said after midnight in Tokyo, yesterday is the 31st, although it is still that day in UTC."""
        event = resolve_event(text, NEW_YEAR)
        assert event is not None
        assert (event.at.date().isoformat(), event.precision) == (day, "day")
        assert event.at.utcoffset() == NEW_YEAR.utcoffset()

    @pytest.mark.parametrize(
        ("text", "day", "precision"),
        [
            ("Biscuit swallowed half an oven mitt last Saturday.", "2026-05-09", "day"),
            ("I saw her the day before yesterday", "2026-05-11", "day"),
            ("I ran on Sunday", "2026-05-10", "day"),
            ("I'll try that on Friday", "2026-05-15", "day"),
            ("in three weeks I fly to Rome", "2026-06-03", "week"),
            ("I moved two months ago", "2026-03-01", "month"),
            ("next month we marry", "2026-06-01", "month"),
            ("On May 8th I met him", "2026-05-08", "day"),
            ("My mother is having her hip replaced on June 9.", "2026-06-09", "day"),
            ("I signed up for the marathon in October.", "2026-10-01", "month"),
            ("I met him in October", "2025-10-01", "month"),
            ("On 1 March I weighed 71 kg", "2026-03-01", "day"),
            ("I was born in 1990", "1990-01-01", "year"),
            ("先週の土曜日に海へ行った", "2026-05-09", "day"),
            ("来月引っ越します", "2026-06-01", "month"),
            ("5月8日に会った", "2026-05-08", "day"),
            ("予定日は来年の一月十日だそうです", "2027-01-10", "day"),
            ("一昨日届いて", "2026-05-11", "day"),
            ("三日前に買った", "2026-05-10", "day"),
            ("今度の土曜から二泊です", "2026-05-16", "day"),
            ("지난주 토요일에 산에 갔어요", "2026-05-09", "day"),
            ("다음 달에 이사해요", "2026-06-01", "month"),
            ("다음 달 16일에 입대해요", "2026-06-16", "day"),
            ("지난 일요일에 쳤어요", "2026-05-10", "day"),
            ("그저께 풀었어요", "2026-05-11", "day"),
            ("3주 전에 다쳤어요", "2026-04-22", "week"),
            ("上周六去了博物馆", "2026-05-09", "day"),
            ("下个月搬家", "2026-06-01", "month"),
            ("我三天前买的", "2026-05-10", "day"),
            ("后天出发", "2026-05-15", "day"),
            ("去年十月结婚了", "2025-10-01", "month"),
            ("五月八号见面", "2026-05-08", "day"),
            ("会议在2026-06-08举行", "2026-06-08", "day"),
            ("一昨年に越してきた", "2024-01-01", "year"),
        ],
    )
    def test_relative_and_calendar_dates(self, text: str, day: str, precision: str) -> None:
        """Each language says when in its own way; the precision says how exactly."""
        event = resolve_event(text, WEDNESDAY)
        assert event is not None
        assert (event.at.date().isoformat(), event.precision) == (day, precision)

    @pytest.mark.parametrize(
        "text",
        [
            "hello",
            "It may be fine",
            "I got a second helping",
            "月光很好",
            "この一年間",
            "2026-02-30 happened",
            "시작해 보세요",
            "",
        ],
    )
    def test_no_time_no_event(self, text: str) -> None:
        """What names no time, or an impossible one, has none."""
        assert resolve_event(text, WEDNESDAY) is None

    def test_the_calendar_ends_somewhere(self) -> None:
        """The first and the last day of the calendar raise nothing."""
        for day in (date.min, date.max):
            at = datetime(day.year, day.month, day.day, tzinfo=WEDNESDAY.tzinfo)
            for text in ("yesterday", "tomorrow", "last year", "next month", "in 5 weeks", "last week", "on Friday"):
                resolve_event(text, at)

    def test_a_naive_time_is_refused(self) -> None:
        """Without an offset nobody knows which day yesterday was."""
        with pytest.raises(ValueError, match="offset"):
            resolve_event("yesterday", datetime(2026, 5, 13))  # noqa: DTZ001
