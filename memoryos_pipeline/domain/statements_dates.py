"""When what a statement tells happened or will happen, seen from the turn that said it. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Literal

from memoryos_pipeline.domain import dates
from memoryos_pipeline.domain.knowledge import EventPrecision

Direction = Literal["past", "future", "unknown"]
Found = tuple[date, EventPrecision]

_FUTURE = re.compile(
    r"\b(?:will|going to|gonna|tomorrow|next|upcoming|plan(?:ning|ned)? to|signed up|registered|booked|scheduled)\b"
    r"|'ll\b|\b(?:am|is|are)\b \w+ing\b|'(?:m|re|s) \w+ing\b"
    r"|つもり|予定|計画|ことにし|に決め|予約|ます。?$|거예요|거야|겠|예정|할게|려고|기로 했"
    r"|(?<![必重需主])要|(?<![社])会(?![っうえおい社議])|打算|准备|计划|决定"
)
_PAST = re.compile(
    r"\b(?:was|were|did|had|went|saw|got|met|took|came|bought|began|broke|fell|left|ran|told|said|made|found|ate"
    r"|gave|lost|won|wrote|drove|flew|[a-z]{2,}ed)\b"
    r"|(?:た|だ)(?:[。、！!…んけがらの]|$)|でした|ました|[了过]"
)
_WRONG_TENSE = 2.0
"""A date without a year on the wrong side of the tense has to be this much nearer to be chosen."""


@dataclass(frozen=True, slots=True)
class EventTime:
    """The start of the day, week, month or year of an event, in the offset of the turn."""

    at: datetime
    precision: EventPrecision


def resolve_event(text: str, occurred_at: datetime) -> EventTime | None:
    """Return when the statement's event is, or None when it names no time. `occurred_at` must carry an offset."""
    if occurred_at.tzinfo is None:
        message = "occurred_at must carry an offset"
        raise ValueError(message)
    lowered = text.lower()
    hits = [(match, rule) for pattern, rule in _RULES if (match := pattern.search(lowered))]
    today, direction = occurred_at.date(), _direction(lowered)
    for match, rule in sorted(hits, key=lambda hit: (hit[0].start(), -hit[0].end())):
        found = _within_calendar(rule, match, today, direction)
        if found is not None:
            return EventTime(datetime.combine(found[0], time(), occurred_at.tzinfo), found[1])
    return None


def _within_calendar(rule: "_Rule", match: re.Match[str], today: date, direction: Direction) -> Found | None:
    try:
        return rule(match, today, direction)
    except OverflowError:
        return None


def _direction(text: str) -> Direction:
    if _FUTURE.search(text):
        return "future"
    return "past" if _PAST.search(text) or _has_korean_past(text) else "unknown"


def _has_korean_past(text: str) -> bool:
    # The past is the final consonant ㅆ, except in the words for "be" and "will".
    return any("가" <= c <= "힣" and (ord(c) - 0xAC00) % 28 == 20 and c not in "있겠" for c in text)


def _days(offset: int) -> "_Rule":
    return lambda _match, today, _direction: (today + timedelta(days=offset), "day")


def _calendar(match: re.Match[str], today: date, direction: Direction) -> Found | None:
    """A month with or without day and year; without a year the tense decides, then nearness."""
    parts = match.groupdict()
    name = parts.get("month_name")
    month = dates.MONTHS[name] if name else dates.number_of(parts["month"])
    day = dates.number_of(parts["day"]) if parts.get("day") else None
    possible = [found for year in _years(parts, today) if (found := dates.date_or_none(year, month, day or 1))]
    if not possible:
        return None
    return _choose(possible, today, direction, whole_month=day is None), "day" if day else "month"


def _years(parts: dict[str, str | None], today: date) -> list[int]:
    named, shifted = parts.get("year"), parts.get("year_shift")
    if named:
        return [int(named)]
    if shifted:
        return [today.year + dates.SHIFTS[shifted]]
    return [today.year - 1, today.year, today.year + 1]


def _choose(possible: list[date], today: date, direction: Direction, *, whole_month: bool) -> date:
    def distance(found: date) -> float:
        days = (found - (dates.start_of(today, "month") if whole_month else today)).days
        is_wrong = (direction == "past" and days > 0) or (direction == "future" and days < 0)
        return abs(days) * (_WRONG_TENSE if is_wrong else 1.0)

    return min(possible, key=distance)


def _year(match: re.Match[str], _today: date, _direction: Direction) -> Found | None:
    year = int(match["year"])
    return (date(year, 1, 1), "year") if 1900 <= year <= 2200 else None


def _ago(match: re.Match[str], today: date, _direction: Direction) -> Found | None:
    parts = match.groupdict()
    unit, count = dates.unit_of(match["unit"]), dates.number_of(match["count"])
    if count == 0 or count > 400:
        return None
    sign = 1 if parts.get("later") or not parts.get("ago") else -1
    return dates.start_of(dates.shift(today, unit, sign * count), "day" if unit == "week" else unit), unit


def _shifted(match: re.Match[str], today: date, _direction: Direction) -> Found | None:
    unit = dates.unit_of(match["unit"])
    moved = dates.shift(dates.start_of(today, unit), unit, dates.SHIFTS[match["shift"]])
    day = match.groupdict().get("day")
    if unit == "month" and day:
        found = dates.date_or_none(moved.year, moved.month, dates.number_of(day))
        return (found, "day") if found else None
    return moved, unit


def _year_before_last(_match: re.Match[str], today: date, _direction: Direction) -> Found | None:
    return dates.shift(dates.start_of(today, "year"), "year", -2), "year"


def _weekday_of_week(match: re.Match[str], today: date, _direction: Direction) -> Found | None:
    monday = dates.shift(dates.start_of(today, "week"), "week", dates.SHIFTS[match["shift"]])
    return monday + timedelta(days=dates.WEEKDAYS[match["weekday"]]), "day"


def _past_weekday(match: re.Match[str], today: date, _direction: Direction) -> Found | None:
    return dates.past_weekday(today, dates.WEEKDAYS[match["weekday"]]), "day"


def _coming_weekday(match: re.Match[str], today: date, _direction: Direction) -> Found | None:
    return today + timedelta(days=(dates.WEEKDAYS[match["weekday"]] - today.weekday() - 1) % 7 + 1), "day"


def _weekday(match: re.Match[str], today: date, direction: Direction) -> Found | None:
    return (_past_weekday if direction == "past" else _coming_weekday)(match, today, direction)


_Rule = Callable[[re.Match[str], date, Direction], Found | None]
_SOURCES: tuple[tuple[str, _Rule], ...] = (
    *((shape, _calendar) for shape in dates.DATES),
    (rf"\b(?:in|since|by|until|during|of) {dates.MONTH}(?: (?P<year>\d{{4}}))?", _calendar),
    (rf"{dates.CJK_MONTH}(?![月\d])", _calendar),
    (r"(?P<year>\d{4}) ?[年년]", _year),
    (r"\b(?:in|since|back in) (?P<year>(?:19|20)\d\d)\b", _year),
    *((f"{spaced}|{unspaced}", _days(offset)) for offset, spaced, unspaced in dates.DAY_WORDS),
    (rf"\b{dates.COUNT}\s+{dates.UNIT} (?:(?P<ago>ago|earlier)|(?P<later>from now|later))\b", _ago),
    (rf"\bin {dates.COUNT}\s+{dates.UNIT}\b", _ago),
    (rf"{dates.COUNT}\s*{dates.CJK_UNIT}[间間]?\s*之?(?:(?P<ago>前|전)|(?P<later>後|后|뒤|후))", _ago),
    *((shape, _weekday_of_week) for shape in (rf"\b(?P<shift>next) {dates.WEEKDAY}", *dates.WEEKDAYS_OF_WEEKS)),
    (rf"\b(?:last|this past) {dates.WEEKDAY}", _past_weekday),
    (r"지난 ?(?P<weekday>[월화수목금토일])요일", _past_weekday),
    (rf"\b(?:this|this coming|coming) {dates.WEEKDAY}", _coming_weekday),
    (r"今度の(?P<weekday>[月火水木金土日])曜", _coming_weekday),
    (r"\b(?P<shift>past) (?P<unit>week|month|year)\b", _shifted),
    (dates.YEAR_BEFORE_LAST, _year_before_last),
    *((rf"{shape}(?:[の ]?{dates.CJK_DAY}[号日일])?", _shifted) for shape in dates.SHIFTED_UNITS),
    *((shape, _weekday) for shape in (rf"\b{dates.WEEKDAY}", *dates.CJK_WEEKDAYS)),
)  # fmt: skip
_RULES = tuple((re.compile(pattern), rule) for pattern, rule in _SOURCES)
