"""Dates are read alike in four languages, seen from a moment that is given."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_pipeline.domain.question_dates import (
    asks_when,
    closeness,
    find_dates,
    has_time_expression,
    without_dates,
)

SEOUL = timezone(timedelta(hours=9))
NOW = datetime(2025, 1, 8, 10, tzinfo=SEOUL)
"""A Wednesday."""


class TestFindDates:
    @pytest.mark.parametrize(
        ("texts", "first", "after"),
        [
            (("on May 7, 2024", "7 May 2024", "the 7th of May 2024", "2024-05-07", "2024年5月7日", "2024年5月7号",
              "2024년 5월 7일", "2024/5/7"), "2024-05-07", "2024-05-08"),
            (("May 7th", "May the 7th", "5月7日", "5月7号", "五月七日", "5월 7일"), "2024-05-07", "2024-05-08"),
            (("in May 2024", "2024年5月に", "2024년 5월에", "May 2024"), "2024-05-01", "2024-06-01"),
            (("in 2023", "2023年に", "2023년에"), "2023-01-01", "2024-01-01"),
            (("yesterday", "昨日", "어제", "昨天"), "2025-01-07", "2025-01-08"),
            (("the day before yesterday", "一昨日", "그저께", "前天"), "2025-01-06", "2025-01-07"),
            (("the day after tomorrow", "明後日", "모레", "后天"), "2025-01-10", "2025-01-11"),
            (("last week", "先週", "지난주", "上周", "上个星期"), "2024-12-30", "2025-01-06"),
            (("last month", "先月", "지난달", "上个月"), "2024-12-01", "2025-01-01"),
            (("去年10月", "去年十月", "작년 10월"), "2024-10-01", "2024-11-01"),
            (("last year", "去年", "작년", "昨年"), "2024-01-01", "2025-01-01"),
            (("three days ago", "3日前", "3일 전", "三天前"), "2025-01-05", "2025-01-06"),
            (("3 months ago", "3か月前", "3개월 전", "三个月前"), "2024-10-01", "2024-11-01"),
            (("last Friday", "先週の金曜日", "지난주 금요일", "上周五"), "2025-01-03", "2025-01-04"),
        ],
    )  # fmt: skip
    def test_the_same_date_in_every_language(self, texts: tuple[str, ...], first: str, after: str) -> None:
        """Every way to say a date gives the same window, in the offset of the moment."""
        for text in texts:
            window = find_dates(f"What happened {text}?", NOW)[0]
            assert (window.start.date().isoformat(), window.end.date().isoformat()) == (first, after), text
            assert window.start.utcoffset() == timedelta(hours=9)

    @pytest.mark.parametrize(
        "text",
        [
            "what may I do",
            "march on",
            "2024-02-30",
            "13月",
            "room 2023",
            "the second one",
            "",
            "何をした",
            "시작해 보세요",
            "aprİl 3",
            "thİs week",
        ],
    )
    def test_no_date_is_no_window(self, text: str) -> None:
        """Words and numbers that are no dates, and dates that do not exist, give nothing."""
        assert find_dates(text, NOW) == []

    def test_a_date_without_a_year_is_the_latest_first(self) -> None:
        """The latest occurrence counts most, earlier years less."""
        windows = find_dates("in December", NOW)

        assert [window.start.year for window in windows] == [2024, 2023, 2022, 2021]
        assert [window.weight for window in windows] == sorted((w.weight for w in windows), reverse=True)

    def test_a_naive_moment_is_refused(self) -> None:
        """Without an offset nobody can tell which day `today` is."""
        with pytest.raises(ValueError, match="offset"):
            find_dates("today", datetime(2025, 1, 8))  # noqa: DTZ001

    @given(st.text(max_size=80), st.integers(0, 7_258_118_400))
    def test_any_text_is_read(self, text: str, epoch_seconds: int) -> None:
        """Whatever is asked, whenever, windows are in order and nothing breaks."""
        for window in find_dates(text, datetime.fromtimestamp(epoch_seconds, tz=UTC)):
            assert window.start < window.end
            assert 0 <= closeness([window], NOW) <= 1

    @given(
        st.integers(0, 999),
        st.sampled_from(["days ago", "weeks ago", "months ago", "years ago", "日前", "년 전"]),
    )
    def test_long_ago_is_no_error(self, count: int, unit: str) -> None:
        """Any distance is a window, or none when it is before the calendar."""
        assert len(find_dates(f"{count} {unit}", NOW)) <= 1


class TestCloseness:
    def test_it_fades_with_the_distance(self) -> None:
        """One inside, less outside, the less the farther, and nothing without a window."""
        windows = find_dates("yesterday", NOW)
        inside, near, far = (NOW - timedelta(days=days) for days in (1, 3, 9))

        assert closeness(windows, inside) == 1
        assert 1 > closeness(windows, near) > closeness(windows, far) > 0
        assert closeness([], inside) == 0

    def test_a_day_is_a_local_day(self) -> None:
        """Half past midnight in Seoul is today there, although it is yesterday in UTC."""
        half_past_midnight = datetime(2025, 1, 7, 15, 30, tzinfo=UTC)

        assert closeness(find_dates("today", NOW), half_past_midnight) == 1
        assert closeness(find_dates("yesterday", NOW), half_past_midnight) < 1


class TestAsksWhen:
    @pytest.mark.parametrize(
        "question",
        ["When did she move?", "How long was the trip?", "What year was that?", "いつ引っ越した？", "何曜日だった？",
         "언제 이사했어?", "며칠 걸렸어?", "몇 월이었지?", "什么时候搬家的？", "住了多久？", "星期几见面？"],
    )  # fmt: skip
    def test_it_wants_a_time(self, question: str) -> None:
        """A question for a time or a duration is recognized in four languages."""
        assert asks_when(question)

    @pytest.mark.parametrize("question", ["Where did she move?", "誰が来た？", "누가 왔어?", "谁来了？"])
    def test_it_wants_something_else(self, question: str) -> None:
        """Other questions are not."""
        assert not asks_when(question)


class TestHasTimeExpression:
    @pytest.mark.parametrize(
        "text",
        ["I moved yesterday.", "We met at 5 pm.", "It took two weeks.", "On Friday we sail.", "Back in 1999",
         "昨日引っ越した", "3時に会おう", "어제 이사했다", "두 시간 걸렸고 금요일이다", "上周搬家了", "等了三个月"],
    )  # fmt: skip
    def test_it_names_a_time(self, text: str) -> None:
        """Dates, times and durations are seen in four languages."""
        assert has_time_expression(text)

    @pytest.mark.parametrize("text", ["I like tea.", "お茶が好き", "차를 좋아해", "我喜欢喝茶", "may I?"])
    def test_it_names_none(self, text: str) -> None:
        """Plain statements have none."""
        assert not has_time_expression(text)


class TestWithoutDates:
    @pytest.mark.parametrize(
        ("text", "left"),
        [
            ("When did she go camping in June?", "When did she go camping?"),
            ("What happened on the 7th of May 2023 at the pier?", "What happened at the pier?"),
            ("5月8日に友達と何をした？", "友達と何をした？"),
            ("어제 친구와 뭘 했어?", "친구와 뭘 했어?"),
            ("上周我在图书馆借了什么书？", "我在图书馆借了什么书？"),
        ],
    )
    def test_the_date_is_left_out(self, text: str, left: str) -> None:
        """With the words that only tie it to the sentence, in every language."""
        assert without_dates(text) == left

    @pytest.mark.parametrize(
        "text",
        [
            "How long has she lived here since 2016?",
            "四月から週何日働く？",
            "사월부터 며칠 일해?",
            "从四月起上几天班？",
        ],
    )
    def test_a_beginning_or_an_end_stays(self, text: str) -> None:
        """Since when something is so belongs to what it is."""
        assert without_dates(text) == text

    @pytest.mark.parametrize(
        "text", ["Yesterday?", "昨日は？", "What did she paint?", "어제는?", "İn June 2023 we met Ada"]
    )
    def test_nothing_or_little_left_is_kept_whole(self, text: str) -> None:
        """A question about a date alone, or without any, stays as it is."""
        assert without_dates(text) == text
