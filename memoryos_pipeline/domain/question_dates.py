"""Dates that a text names in English, Japanese, Korean or Chinese, as windows seen from a given moment. Pure."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from memoryos_pipeline.domain import dates
from memoryos_pipeline.domain.dates import Unit

FADE_DAYS: dict[Unit, float] = {"day": 4.0, "week": 7.0, "month": 14.0, "year": 60.0}
"""How fast closeness fades outside a window: to 1/e within so many days."""
YEARLESS_FADE = 0.8
"""A date without a year means its latest occurrence; each year before that counts this much less."""
YEARLESS_OCCURRENCES = 4
CUT = "\0"
LEAST_LEFT = 4
"""Letters a question has to have besides its dates to be read without them."""


@dataclass(frozen=True, slots=True)
class DateWindow:
    """A half-open span of time a text speaks of; `weight` is below 1 when the year is a guess."""

    start: datetime
    end: datetime
    unit: Unit
    weight: float = 1.0


def find_dates(text: str, now: datetime) -> list[DateWindow]:
    """Return the windows a text names, most exact first, in the offset of `now` (which must be aware)."""
    if now.tzinfo is None:
        message = "now must carry an offset"
        raise ValueError(message)
    windows: list[DateWindow] = []
    rest = text.lower()
    for pattern, resolve in _PATTERNS:
        for match in pattern.finditer(rest):
            windows += [_aware(window, now) for window in resolve(match, now.date())]
        rest = pattern.sub(lambda match: CUT * len(match.group()), rest)
    return windows


def without_dates(text: str) -> str:
    """Return a text without the dates it names and the particles that hold them; the text itself when little is left.

    A date has an arm of its own, and in a sentence vector it draws every text that names a month.
    """
    rest = text.lower()
    if len(rest) != len(text):  # a few capitals of other alphabets are one letter, and two when they are small
        return text
    for pattern, _ in _PATTERNS:
        rest = pattern.sub(lambda match: CUT * len(match.group()), rest)
    marked = "".join(CUT if mark == CUT else letter for letter, mark in zip(text, rest, strict=True))
    for match in re.finditer(f"{CUT}+", marked):
        start, end = match.span()
        if _SINCE.search(text[:end]) or _SINCE_BEHIND.match(text[end:]):
            marked = marked[:start] + text[start:end] + marked[end:]
    left = re.sub(r"\s+(?=[,.!?])", "", " ".join(_HELD.sub(" ", marked).split()))
    return left if sum(map(str.isalnum, left)) >= LEAST_LEFT else text


def closeness(windows: Sequence[DateWindow], at: datetime) -> float:
    """Return 1 inside a window, fading with the distance to the nearest one; 0 without windows."""
    return max(
        (window.weight * math.exp(-_gap_days(window, at) / FADE_DAYS[window.unit]) for window in windows),
        default=0.0,
    )


def asks_when(question: str) -> bool:
    """Tell whether a question wants a time or a duration for an answer."""
    return _ASKS_WHEN.search(question) is not None


def has_time_expression(text: str) -> bool:
    """Tell whether a text names a time, a date or a duration."""
    if _TIME_WORDS.search(text):
        return True
    return not text.isascii() and _TIME_WORDS_UNSPACED.search(text) is not None


@dataclass(frozen=True, slots=True)
class _Span:
    first: date
    unit: Unit
    weight: float = 1.0


def _aware(span: _Span, now: datetime) -> DateWindow:
    after = dates.shift(span.first, span.unit, 1)
    start, end = (datetime.combine(day, time(), tzinfo=now.tzinfo) for day in (span.first, after))
    return DateWindow(start, end, span.unit, span.weight)


def _gap_days(window: DateWindow, at: datetime) -> float:
    if window.start <= at < window.end:
        return 0.0
    gap = window.start - at if at < window.start else at - window.end
    return gap / timedelta(days=1)


def _calendar(match: re.Match[str], today: date) -> Iterator[_Span]:
    parts = match.groupdict()
    name = parts.get("month_name")
    month = dates.MONTHS[name] if name else dates.number_of(parts["month"])
    day = dates.number_of(parts["day"]) if parts.get("day") else None
    for year, weight in _years(parts, (month, day or 1), today):
        first = dates.date_or_none(year, month, day or 1)
        if first is not None:
            yield _Span(first, "day" if day else "month", weight)


def _years(parts: dict[str, str | None], month_day: tuple[int, int], today: date) -> Iterator[tuple[int, float]]:
    named, shifted = parts.get("year"), parts.get("year_shift")
    if named or shifted:
        year = int(named) if named else today.year + dates.SHIFTS[shifted or ""]
        if 1 <= year <= 9998:
            yield year, 1.0
        return
    latest = today.year if month_day <= (today.month, today.day) else today.year - 1
    for back in range(YEARLESS_OCCURRENCES):
        if latest - back >= 1:
            yield latest - back, YEARLESS_FADE**back


def _year(match: re.Match[str], _: date) -> Iterator[_Span]:
    if 1 <= int(match["year"]) <= 9998:
        yield _Span(date(int(match["year"]), 1, 1), "year")


def _ago(match: re.Match[str], today: date) -> Iterator[_Span]:
    count, unit = dates.number_of(match["count"]), dates.unit_of(match["unit"])
    if unit == "year" and count >= today.year:
        return
    # A week that long ago is the seven days around that day.
    first = today - timedelta(days=3) if unit == "week" else dates.start_of(today, unit)
    yield _Span(dates.shift(first, unit, -count), unit)


def _weekday_of_week(match: re.Match[str], today: date) -> Iterator[_Span]:
    monday = dates.shift(dates.start_of(today, "week"), "week", dates.SHIFTS[match["shift"]])
    yield _Span(monday + timedelta(days=dates.WEEKDAYS[match["weekday"]]), "day")


def _last_weekday(match: re.Match[str], today: date) -> Iterator[_Span]:
    yield _Span(dates.past_weekday(today, dates.WEEKDAYS[match["weekday"]]), "day")


def _weekday(match: re.Match[str], today: date) -> Iterator[_Span]:
    yield _Span(dates.past_weekday(today + timedelta(days=1), dates.WEEKDAYS[match["weekday"]]), "day")


def _shifted(match: re.Match[str], today: date) -> Iterator[_Span]:
    unit = dates.unit_of(match["unit"])
    yield _Span(dates.shift(dates.start_of(today, unit), unit, dates.SHIFTS[match["shift"]]), unit)


def _days(offset: int) -> Callable[[re.Match[str], date], Iterator[_Span]]:
    return lambda _, today: iter([_Span(today + timedelta(days=offset), "day")])


def _year_before_last(_: re.Match[str], today: date) -> Iterator[_Span]:
    yield _Span(dates.shift(dates.start_of(today, "year"), "year", -2), "year")


_SHAPES: tuple[tuple[str, Callable[[re.Match[str], date], Iterator[_Span]]], ...] = (
    *((shape, _calendar) for shape in dates.DATES),
    (rf"{dates.CJK_MONTH}(?!\s*[前전曜])", _calendar),
    (r"(?<!\d)(?P<year>\d{4})\s*[年년](?!\s*[前전間간])", _year),
    (rf"\b{dates.MONTH},?\s+(?:of\s+)?(?P<year>\d{{4}})\b", _calendar),
    (rf"\b(?:in|during|since|of|by|until|early|mid|late|last|this)[\s-]{dates.MONTH}", _calendar),
    (
        r"\b(?:in|during|since|of|by|until|early|mid|late|the year|summer|winter|spring|fall|autumn)[\s-]"
        r"(?P<year>(?:19|20)\d{2})\b",
        _year,
    ),
    (rf"\b{dates.COUNT}\s+{dates.UNIT}\s+(?:ago|before|earlier)\b", _ago),
    (rf"{dates.COUNT}\s*{dates.CJK_UNIT}[间間]?\s*之?(?:前|전)", _ago),
    *((shape, _weekday_of_week) for shape in dates.WEEKDAYS_OF_WEEKS),
    (rf"\blast\s+{dates.WEEKDAY}", _last_weekday),
    *((shape, _weekday) for shape in (rf"\b{dates.WEEKDAY}", *dates.CJK_WEEKDAYS)),
    *((f"{spaced}|{unspaced}", _days(offset)) for offset, spaced, unspaced in dates.DAY_WORDS),
    (dates.YEAR_BEFORE_LAST, _year_before_last),
    *((shape, _shifted) for shape in dates.SHIFTED_UNITS),
)
_PATTERNS = tuple((re.compile(shape), resolve) for shape, resolve in _SHAPES)


_HELD = re.compile(
    rf"(?:\b(?:on|in|during|by|of|the|at|around|back)\s+)*{CUT}+"
    r"(?:には|に|の|は|ごろ|頃|에는|에|의|쯤|的)?",
    re.IGNORECASE,
)
"""A date with the words that only tie it to the sentence."""
_SINCE = re.compile(r"\b(?:since|until|till|from)\s+[^,.!?]{1,20}$", re.IGNORECASE)
_SINCE_BEHIND = re.compile(
    r"\s*(?:から|まで|以来|以降|부터|까지|이후|起|以来|以后|为止|onwards?\b|on\b)", re.IGNORECASE
)
"""Where something began or ended is what it is about, and no day to look at."""
_ASKS_WHEN = re.compile(
    r"\bwhen\b|\bhow (?:long|old|often|recently|many (?:days|weeks|months|years|hours|minutes))\b"
    r"|\b(?:what|which) (?:date|day|month|year|time|week|season)\b|\bsince when\b"
    r"|いつ|何[月日年時週]|何曜日|何[かヶカ]月|何年|何日|どのくらいの期間|どれくらいの期間|何歳"
    r"|언제|몇\s*(?:월|일|년|시|주|달|개월|살)|무슨 요일|며칠|얼마나 오래|얼마 동안"
    r"|什么时候|什麼時候|何时|哪[一]?[天年月日]|几[月号日点年天]|星期几|周几|多久|多长时间|几岁",
    re.IGNORECASE,
)
_TIME_WORDS = re.compile(
    rf"\b(?:{'|'.join(dates.WEEKDAY_NAMES)}"
    r"|yesterday|today|tonight|tomorrow|ago|recently|weekend|the other day|in may|may \d"
    r"|(?:last|next|this) (?:night|week|month|year|summer|winter|spring|fall|autumn|morning|evening|afternoon)"
    r"|january|february|march|april|june|july|august|september|october|november|december"
    r"|(?:19|20)\d{2}\b|\d{1,2}(?::\d{2})?\s*[ap]\.?m\b"
    r"|(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|few|couple of|several)"
    r" (?:more )?(?:days?|weeks?|months?|years?|hours?|minutes?)\b)",
    re.IGNORECASE,
)
_TIME_WORDS_UNSPACED = re.compile(
    "|".join(
        (
            r"\d+\s*[年月日時号點点년월일시]|[月火水木金土日]曜|[월화수목금토일]요일|(?:星期|周|礼拜)[一二三四五六日天]",
            r"[\d一二三四五六七八九十両两半]+\s*(?:年|か月|ヶ月|カ月|个月|週間|周|天|日間|時間|小时|分钟|개월|년|주|일|시간)",
            *(unspaced for _, _, unspaced in dates.DAY_WORDS),
            *(
                re.sub(r"\?P<\w+>", "?:", shape)
                for shape in (*dates.CJK_WEEKDAYS, *dates.SHIFTED_UNITS, dates.YEAR_BEFORE_LAST)
            ),
            r"最近|この前|週末|夏休み|지난번|요즘|최근|주말|上次|前几天|周末|暑假|寒假",
        )
    )
)
