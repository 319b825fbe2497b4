"""When what a statement tells happened or will happen, seen from the turn that said it. Pure."""

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Literal

from memoryos_pipeline.domain.knowledge import EventPrecision

Direction = Literal["past", "future", "unknown"]
Found = tuple[date, EventPrecision]

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAYS = (
    {name: index for index, name in enumerate(_WEEKDAY_NAMES)}
    | {character: index for index, character in enumerate("月火水木金土日")}
    | {character: index for index, character in enumerate("월화수목금토일")}
    | {character: index for index, character in enumerate("一二三四五六日")}
    | {"天": 6}
)
_NUMBER_WORDS = {
    word: value
    for value, words in enumerate(
        ("", "a an one 一 한", "couple two 二 两 兩 두 이", "three 三 세 삼", "four 四 네 사", "five 五 다섯 오",
         "six 六 여섯 육", "seven 七 일곱 칠", "eight 八 여덟 팔", "nine 九 아홉 구", "ten 十 열 십", "eleven 十一",
         "twelve 十二")
    )
    for word in words.split()
}  # fmt: skip
_MONTH = (
    r"(?P<month_name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WEEKDAY = r"(?P<weekday>mon|tues|wednes|thurs|fri|satur|sun)day\b"
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_NUMBER_WORDS, key=len, reverse=True))})(?: of)?"
_DAY = r"(?P<day>\d{1,2}|[一二三四五六七八九十]{1,3})"
_CJK_YEAR = r"(?:(?P<year>\d{4}) ?[年년] ?|(?P<year_shift>[去昨今来明]|작|올|내)[年년해](?:の|의)? ?)?"
_CJK_MONTH = r"(?P<month>\d{1,2}|[一二三四五六七八九十]{1,2}) ?[月월]"
_UNITS: dict[str, EventPrecision] = {
    "d": "day", "日": "day", "天": "day", "일": "day",
    "w": "week", "週": "week", "周": "week", "星": "week", "礼": "week", "주": "week",
    "m": "month", "か": "month", "ヶ": "month", "カ": "month", "ヵ": "month", "个": "month", "月": "month",
    "개": "month", "달": "month", "y": "year", "年": "year", "년": "year", "해": "year",
}  # fmt: skip
_SHIFTS = {
    "last": -1, "past": -1, "this": 0, "coming": 0, "next": 1, "先": -1, "今": 0, "来": 1, "上": -1, "这": 0, "本": 0,
    "下": 1, "지난": -1, "이번": 0, "다음": 1, "去": -1, "昨": -1, "明": 1, "작": -1, "올": 0, "내": 1,
}  # fmt: skip

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


def _number(text: str) -> int:
    if text.isdigit():
        return int(text)
    if "十" in text:
        tens, _, ones = text.partition("十")
        return 10 * _NUMBER_WORDS.get(tens, 1) + _NUMBER_WORDS.get(ones, 0)
    return _NUMBER_WORDS.get(text, 0)


def _shift_month(day: date, months: int) -> date:
    index = day.year * 12 + day.month - 1 + months
    year, month = divmod(index, 12)
    if not 1 <= year <= 9999:
        return day
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _shift(day: date, unit: EventPrecision, count: int) -> date:
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    return _shift_month(day, count * (12 if unit == "year" else 1))


def _start(day: date, unit: EventPrecision) -> date:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "month":
        return day.replace(day=1)
    return day.replace(month=1, day=1) if unit == "year" else day


def _days(offset: int) -> Callable[[re.Match[str], date, Direction], Found | None]:
    return lambda _match, today, _direction: (today + timedelta(days=offset), "day")


def _date_or_none(year: int, month: int, day: int) -> date | None:
    if not (1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]):
        return None
    return date(year, month, day)


def _calendar(match: re.Match[str], today: date, direction: Direction) -> Found | None:
    """A month with or without day and year; without a year the tense decides, then nearness."""
    parts = match.groupdict()
    name = parts.get("month_name")
    month = _MONTH_NAMES.index(name[:3]) + 1 if name else _number(parts["month"])
    day = _number(parts["day"]) if parts.get("day") else None
    years = _years(parts, today)
    dates = [found for year in years if (found := _date_or_none(year, month, day or 1))]
    if not dates:
        return None
    return _choose(dates, today, direction, whole_month=day is None), "day" if day else "month"


def _years(parts: dict[str, str | None], today: date) -> list[int]:
    named, shift = parts.get("year"), parts.get("year_shift")
    if named:
        return [int(named)]
    if shift:
        return [today.year + _SHIFTS[shift]]
    return [today.year - 1, today.year, today.year + 1]


def _choose(dates: list[date], today: date, direction: Direction, *, whole_month: bool) -> date:
    def distance(found: date) -> float:
        days = (found - (_start(today, "month") if whole_month else today)).days
        is_wrong = (direction == "past" and days > 0) or (direction == "future" and days < 0)
        return abs(days) * (_WRONG_TENSE if is_wrong else 1.0)

    return min(dates, key=distance)


def _iso(match: re.Match[str], _today: date, _direction: Direction) -> Found | None:
    found = _date_or_none(int(match["year"]), int(match["month"]), int(match["day"]))
    return (found, "day") if found else None


def _year(match: re.Match[str], _today: date, _direction: Direction) -> Found | None:
    year = int(match["year"])
    return (date(year, 1, 1), "year") if 1900 <= year <= 2200 else None


def _ago(match: re.Match[str], today: date, _direction: Direction) -> Found | None:
    parts = match.groupdict()
    unit = _UNITS[match["unit"][0]]
    count = _number(match["count"])
    if count == 0 or count > 400:
        return None
    sign = 1 if parts.get("later") or not parts.get("ago") else -1
    return _start(_shift(today, unit, sign * count), "day" if unit == "week" else unit), unit


def _relative_unit(match: re.Match[str], today: date, _direction: Direction) -> Found | None:
    unit = _UNITS[match["unit"][0]]
    moved = _shift(_start(today, unit), unit, _SHIFTS[match["shift"]])
    day = match.groupdict().get("day")
    if unit == "month" and day:
        found = _date_or_none(moved.year, moved.month, _number(day))
        return (found, "day") if found else None
    return moved, unit


def _week_day(match: re.Match[str], today: date, _direction: Direction) -> Found | None:
    """A weekday of a named calendar week: 先週の土曜, 下周三."""
    monday = today - timedelta(days=today.weekday())
    weekday = _WEEKDAYS[match["weekday"][:3]]
    return monday + timedelta(days=7 * _SHIFTS[match["shift"]] + weekday), "day"


def _past_weekday(match: re.Match[str], today: date, _direction: Direction) -> Found | None:
    return today - timedelta(days=(today.weekday() - _WEEKDAYS[match["weekday"][:3]] - 1) % 7 + 1), "day"


def _coming_weekday(match: re.Match[str], today: date, _direction: Direction) -> Found | None:
    return today + timedelta(days=(_WEEKDAYS[match["weekday"][:3]] - today.weekday() - 1) % 7 + 1), "day"


def _bare_weekday(match: re.Match[str], today: date, direction: Direction) -> Found | None:
    return (_past_weekday if direction == "past" else _coming_weekday)(match, today, direction)


_Rule = Callable[[re.Match[str], date, Direction], Found | None]
_SOURCES: tuple[tuple[str, _Rule], ...] = (
    (r"\b(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})\b", _iso),
    (r"day before yesterday|一昨日|おととい|그저께|그제|前天", _days(-2)),
    (r"(?<!before )\byesterday\b|\blast night\b|(?<!一)昨日|きのう|昨夜|昨晩|어제|어젯밤|昨天|昨晚", _days(-1)),
    (r"\btoday\b|\btonight\b|\bthis (?:morning|afternoon|evening)\b"
     r"|今日|きょう|今朝|今夜|今晩|오늘|今天|今晚|今早", _days(0)),
    (r"day after tomorrow|明後日|あさって|모레|(?<!大)后天", _days(2)),
    (r"(?<!after )\btomorrow\b|明日|あした|내일|明天", _days(1)),
    (r"大后天|しあさって|글피", _days(3)),
    (rf"\b{_MONTH} (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year>\d{{4}}))?", _calendar),
    (rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? (?P<year>\d{{4}}))?", _calendar),
    (rf"\b(?:in|since|by|until|during|of) {_MONTH}(?: (?P<year>\d{{4}}))?", _calendar),
    (rf"{_CJK_YEAR}{_CJK_MONTH} ?{_DAY} ?[日号號일]", _calendar),
    (rf"{_CJK_YEAR}{_CJK_MONTH}(?![月\d])", _calendar),
    (r"(?P<year>\d{4}) ?[年년]", _year),
    (r"\b(?:in|since|back in) (?P<year>(?:19|20)\d\d)\b", _year),
    (rf"\b{_COUNT} (?P<unit>days?|weeks?|months?|years?) (?:(?P<ago>ago|earlier)|(?P<later>from now|later))\b", _ago),
    (rf"\bin {_COUNT} (?P<unit>days?|weeks?|months?|years?)\b", _ago),
    (rf"{_COUNT} ?(?P<unit>日|天|일|週間|周|星期|礼拜|주일?|[かヶカヵ]月|个月|개월|달|年|년)(?:间|間)? ?(?:之)?"
     r"(?:(?P<ago>前|전)|(?P<later>後|后|뒤|후))", _ago),
    (rf"\b(?:last|this past) {_WEEKDAY}", _past_weekday),
    (rf"\b(?:this|this coming|coming) {_WEEKDAY}", _coming_weekday),
    (rf"\b(?P<shift>next) {_WEEKDAY}", _week_day),
    (r"(?P<shift>先|今|来)週の?(?P<weekday>[月火水木金土日])曜?", _week_day),
    (r"(?P<shift>上|这|本|下)(?:个)?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])", _week_day),
    (r"(?P<shift>지난|이번|다음) ?주 ?(?P<weekday>[월화수목금토일])요일", _week_day),
    (r"今度の(?P<weekday>[月火水木金土日])曜", _coming_weekday),
    (r"지난 ?(?P<weekday>[월화수목금토일])요일", _past_weekday),
    (r"\b(?P<shift>last|this|next|past) (?P<unit>week|month|year)\b", _relative_unit),
    (r"(?P<shift>先|今|来)(?P<unit>週)", _relative_unit),
    (r"(?P<shift>上|这|本|下)个?(?P<unit>周|星期|礼拜)", _relative_unit),
    (r"(?P<shift>지난|이번|다음) ?(?P<unit>주|달)(?: ?(?P<day>\d{1,2})일)?", _relative_unit),
    (rf"(?P<shift>先|今|来)(?P<unit>月)の?(?:{_DAY}日)?", _relative_unit),
    (rf"(?P<shift>上|这|本|下)个?(?P<unit>月)(?:{_DAY}[号日])?", _relative_unit),
    (r"(?P<shift>[去昨今来明])(?P<unit>年)", _relative_unit),
    (r"(?P<shift>작|올|내)(?P<unit>년|해)", _relative_unit),
    (rf"\b(?:on )?{_WEEKDAY}", _bare_weekday),
    (r"(?P<weekday>[月火水木金土日])曜", _bare_weekday),
    (r"(?P<weekday>[월화수목금토일])요일", _bare_weekday),
    (r"(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])", _bare_weekday),
)  # fmt: skip
_RULES = tuple((re.compile(pattern), rule) for pattern, rule in _SOURCES)
