"""Dates that a text names in English, Japanese, Korean or Chinese, as windows seen from a given moment. Pure."""

import math
import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Literal

Unit = Literal["day", "week", "month", "year"]

FADE_DAYS: dict[Unit, float] = {"day": 4.0, "week": 7.0, "month": 14.0, "year": 60.0}
"""How fast closeness fades outside a window: to 1/e within so many days."""
YEARLESS_FADE = 0.8
"""A date without a year means its latest occurrence; each year before that counts this much less."""
YEARLESS_OCCURRENCES = 4


@dataclass(frozen=True, slots=True)
class DateWindow:
    """A half-open span of time a text speaks of; `weight` is below 1 when the year is a guess."""

    start: datetime
    end: datetime
    unit: Unit
    weight: float = 1.0


_MONTH_NAMES = (
    ("january", "jan"), ("february", "feb"), ("march", "mar"), ("april", "apr"), ("may",), ("june", "jun"),
    ("july", "jul"), ("august", "aug"), ("september", "sept", "sep"), ("october", "oct"), ("november", "nov"),
    ("december", "dec"),
)  # fmt: skip
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, start=1) for name in names}
_MONTH = rf"(?P<month_name>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY_OF = (
    {name: index for index, name in enumerate(_WEEKDAYS)}
    | {character: index for index, character in enumerate("月火水木金土日")}
    | {character: index for index, character in enumerate("월화수목금토일")}
    | {character: index for index, character in enumerate("一二三四五六日")}
    | {"天": 6}
)
_NUMBERS = {
    word: value
    for value, words in enumerate(
        ("", "a an one 一 한 하나", "two couple 二 两 두", "three 三 세", "four 四 네", "five 五 다섯", "six 六 여섯",
         "seven 七 일곱", "eight 八 여덟", "nine 九 아홉", "ten 十 열")
    )
    for word in words.split()
}  # fmt: skip
_NUMBER = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_UNITS: dict[str, Unit] = {
    "day": "day", "日": "day", "天": "day", "일": "day", "week": "week", "週間": "week", "周": "week", "星期": "week",
    "礼拜": "week", "주": "week", "주일": "week", "month": "month", "か月": "month", "ヶ月": "month", "カ月": "month",
    "ヵ月": "month", "个月": "month", "個月": "month", "개월": "month", "달": "month", "year": "year", "年": "year",
    "년": "year",
}  # fmt: skip
_CJK_UNIT = rf"(?P<unit>{'|'.join(sorted((unit for unit in _UNITS if not unit.isascii()), key=len, reverse=True))})"
_PAST_WEEK = "先週|上周|上星期|上个星期|上礼拜|지난주|지난 주"
_THIS_WEEK = "今週|这周|本周|这个星期|이번 주|이번주"
_NEXT_WEEK = "来週|下周|下星期|下个星期|下礼拜|다음 주|다음주"

_RELATIVE: tuple[tuple[str, Unit, int], ...] = (
    (r"\bday before yesterday\b|一昨日|おととい|그저께|그제|前天", "day", -2),
    (r"\byesterday\b|\blast night\b|昨日|きのう|昨夜|昨晩|어제|어젯밤|昨天|昨晚", "day", -1),
    (
        r"\btoday\b|\btonight\b|\bthis (?:morning|afternoon|evening)\b|今日|きょう|今朝|今夜|오늘|今天|今晚|今早",
        "day",
        0,
    ),
    (r"\btomorrow\b|明日|あした|내일|明天", "day", 1),
    (rf"\blast week\b|{_PAST_WEEK}", "week", -1),
    (rf"\bthis week\b|{_THIS_WEEK}", "week", 0),
    (rf"\bnext week\b|{_NEXT_WEEK}", "week", 1),
    (r"\blast month\b|先月|지난달|지난 달|上个月|上個月|上月", "month", -1),
    (r"\bthis month\b|今月|이번 달|이번달|这个月|本月", "month", 0),
    (r"\bnext month\b|来月|다음 달|다음달|下个月", "month", 1),
    (r"\byear before last\b|一昨年|おととし|재작년|前年", "year", -2),
    (r"\blast year\b|去年|昨年|작년|지난해", "year", -1),
    (r"\bthis year\b|今年|올해", "year", 0),
    (r"\bnext year\b|来年|내년|明年", "year", 1),
)


def find_dates(text: str, now: datetime) -> list[DateWindow]:
    """Return the windows a text names, most exact first, in the offset of `now` (which must be aware)."""
    if now.tzinfo is None:
        message = "now must carry an offset"
        raise ValueError(message)
    windows: list[DateWindow] = []
    rest = text
    for pattern, resolve in _PATTERNS:
        for match in pattern.finditer(rest):
            windows += [_aware(window, now) for window in resolve(match, now.date())]
        rest = pattern.sub(lambda match: "\0" * len(match.group()), rest)
    return windows


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
    after = _shift(span.first, span.unit, 1)
    start, end = (datetime.combine(day, time(), tzinfo=now.tzinfo) for day in (span.first, after))
    return DateWindow(start, end, span.unit, span.weight)


def _gap_days(window: DateWindow, at: datetime) -> float:
    if window.start <= at < window.end:
        return 0.0
    gap = window.start - at if at < window.start else at - window.end
    return gap / timedelta(days=1)


def _shift(day: date, unit: Unit, count: int) -> date:
    """Return the first day of the unit `count` units from that of `day` (days and weeks count from `day` itself)."""
    if unit in {"day", "week"}:
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + (count if unit == "month" else count * 12)
    year = min(max(months // 12, 1), 9998)
    return date(year, months % 12 + 1 if unit == "month" else 1, 1)


def _start_of(day: date, unit: Unit) -> date:
    starts = {"day": day, "week": day - timedelta(days=day.weekday()), "month": day.replace(day=1)}
    return starts.get(unit, day.replace(month=1, day=1))


def _calendar(match: re.Match[str], today: date) -> Iterator[_Span]:
    parts = match.groupdict()
    name = parts.get("month_name")
    month = _MONTHS[name.casefold()] if name else int(parts["month"])
    day = int(parts["day"]) if parts.get("day") else None
    if not 1 <= month <= 12:
        return
    for year, weight in _years(parts.get("year"), month, day, today):
        if day is None:
            yield _Span(date(year, month, 1), "month", weight)
        elif 1 <= day <= monthrange(year, month)[1]:
            yield _Span(date(year, month, day), "day", weight)


def _years(named: str | None, month: int, day: int | None, today: date) -> Iterator[tuple[int, float]]:
    if named:
        if 1 <= int(named) <= 9998:
            yield int(named), 1.0
        return
    latest = today.year if (month, day or 1) <= (today.month, today.day) else today.year - 1
    for back in range(YEARLESS_OCCURRENCES):
        if latest - back >= 1:
            yield latest - back, YEARLESS_FADE**back


def _year(match: re.Match[str], _: date) -> Iterator[_Span]:
    if 1 <= int(match["year"]) <= 9998:
        yield _Span(date(int(match["year"]), 1, 1), "year")


def _ago(match: re.Match[str], today: date) -> Iterator[_Span]:
    count = int(match["count"]) if match["count"].isdecimal() else _NUMBERS[match["count"].casefold()]
    unit = _UNITS[match["unit"].casefold()]
    if unit == "year" and count >= today.year:
        return
    yield _Span(_shift(_start_of(today, unit) if unit != "week" else today - timedelta(days=3), unit, -count), unit)


def _weekday(match: re.Match[str], today: date) -> Iterator[_Span]:
    parts = match.groupdict()
    wanted = _WEEKDAY_OF[parts["weekday"].casefold()]
    monday = _start_of(today, "week")
    week = next((offset for name, offset in (("past", -7), ("this", 0), ("next", 7)) if parts.get(name)), None)
    if week is None:
        yield _Span(today - timedelta(days=(today.weekday() - wanted) % 7), "day")
    else:
        yield _Span(monday + timedelta(days=week + wanted), "day")


def _last_weekday(match: re.Match[str], today: date) -> Iterator[_Span]:
    back = (today.weekday() - _WEEKDAY_OF[match["weekday"].casefold()]) % 7
    yield _Span(today - timedelta(days=back or 7), "day")


def _relative(unit: Unit, offset: int) -> Callable[[re.Match[str], date], Iterator[_Span]]:
    def resolve(_: re.Match[str], today: date) -> Iterator[_Span]:
        yield _Span(_shift(_start_of(today, unit), unit, offset), unit)

    return resolve


def _bare_weekday(match: re.Match[str], today: date) -> Iterator[_Span]:
    wanted = _WEEKDAY_OF[match["weekday"] or match["weekday_zh"]]
    yield _Span(today - timedelta(days=(today.weekday() - wanted) % 7), "day")


_WEEK_PREFIX = rf"(?:(?P<past>{_PAST_WEEK})|(?P<this>{_THIS_WEEK})|(?P<next>{_NEXT_WEEK}))"
_ENGLISH_WEEKDAY = rf"(?P<weekday>{'|'.join(_WEEKDAYS)})\b"
_SHAPES: tuple[tuple[str, Callable[[re.Match[str], date], Iterator[_Span]]], ...] = (
    (r"(?<!\d)(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)", _calendar),
    (
        r"(?:(?<!\d)(?P<year>\d{4})\s*[年년]\s*)?(?<!\d)(?P<month>\d{1,2})\s*[月월]\s*(?P<day>\d{1,2})\s*[日号號일]",
        _calendar,
    ),
    (r"(?:(?<!\d)(?P<year>\d{4})\s*[年년]\s*)?(?<!\d)(?P<month>\d{1,2})\s*[月월](?!\s*[前전曜])", _calendar),
    (r"(?<!\d)(?P<year>\d{4})\s*[年년](?!\s*[前전間간])", _year),
    (rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+{_MONTH}(?:,?\s*(?P<year>\d{{4}}))?", _calendar),
    (rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,?\s*(?P<year>\d{{4}})\b)?", _calendar),
    (rf"\b{_MONTH},?\s+(?:of\s+)?(?P<year>\d{{4}})\b", _calendar),
    (rf"\b(?:in|during|since|of|by|until|early|mid|late|last|this)[\s-]{_MONTH}", _calendar),
    (
        r"\b(?:in|during|since|of|by|until|early|mid|late|the year|summer|winter|spring|fall|autumn)[\s-]"
        r"(?P<year>(?:19|20)\d{2})\b",
        _year,
    ),
    (rf"\b{_NUMBER}(?:\s+of)?\s+(?P<unit>day|week|month|year)s?\s+(?:ago|before|earlier)\b", _ago),
    (rf"{_NUMBER}\s*{_CJK_UNIT}\s*(?:前|전)", _ago),
    (
        rf"{_WEEK_PREFIX}\s*(?:の|的)?\s*(?P<weekday>[月火水木金土日월화수목금토일一二三四五六天])(?:曜日?|요일)?",
        _weekday,
    ),
    (rf"\blast\s+{_ENGLISH_WEEKDAY}", _last_weekday),
    (rf"\b{_ENGLISH_WEEKDAY}", _weekday),
    (
        r"(?P<weekday>[月火水木金土日])曜|(?:星期|周|礼拜)(?P<weekday_zh>[一二三四五六日天])",
        _bare_weekday,
    ),
    (r"(?P<weekday>[월화수목금토일])요일", _weekday),
    *((words, _relative(unit, offset)) for words, unit, offset in _RELATIVE),
)
_PATTERNS = tuple((re.compile(shape, re.IGNORECASE), resolve) for shape, resolve in _SHAPES)


_ASKS_WHEN = re.compile(
    r"\bwhen\b|\bhow (?:long|old|often|recently|many (?:days|weeks|months|years|hours|minutes))\b"
    r"|\b(?:what|which) (?:date|day|month|year|time|week|season)\b|\bsince when\b"
    r"|いつ|何[月日年時週]|何曜日|何[かヶカ]月|何年|何日|どのくらいの期間|どれくらいの期間|何歳"
    r"|언제|몇\s*(?:월|일|년|시|주|달|개월|살)|무슨 요일|며칠|얼마나 오래|얼마 동안"
    r"|什么时候|什麼時候|何时|哪[一]?[天年月日]|几[月号日点年天]|星期几|周几|多久|多长时间|几岁",
    re.IGNORECASE,
)
_TIME_WORDS = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|ago|recently|weekend|the other day|{'|'.join(_WEEKDAYS)}|in may|may \d"
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
            *(words.split(r"\b|")[-1] for words, _, _ in _RELATIVE),
            r"最近|この前|週末|夏休み|지난번|요즘|최근|주말|上次|前几天|周末|暑假|寒假",
        )
    )
)
