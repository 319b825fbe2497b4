"""How English, Japanese, Korean and Chinese name days: words, shapes of dates, and calendar arithmetic. Pure.

The shapes are regular expressions for text in lower case.
"""

from calendar import monthrange
from datetime import date, timedelta
from typing import Literal

Unit = Literal["day", "week", "month", "year"]

_MONTH_NAMES = (
    ("january", "jan"), ("february", "feb"), ("march", "mar"), ("april", "apr"), ("may",), ("june", "jun"),
    ("july", "jul"), ("august", "aug"), ("september", "sept", "sep"), ("october", "oct"), ("november", "nov"),
    ("december", "dec"),
)  # fmt: skip
MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, start=1) for name in names}
MONTH = rf"(?P<month_name>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\b\.?"

WEEKDAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAYS = {
    name: index
    for names in (WEEKDAY_NAMES, "月火水木金土日", "월화수목금토일", "一二三四五六日")
    for index, name in enumerate(names)
} | {"天": 6}
WEEKDAY = rf"(?P<weekday>{'|'.join(WEEKDAY_NAMES)})\b"

_NUMBERS = {
    word: value
    for value, words in enumerate(
        ("", "a an one 一 한 하나", "couple two 二 两 兩 두 이", "three 三 세 삼", "four 四 네 사", "five 五 다섯 오",
         "six 六 여섯 육", "seven 七 일곱 칠", "eight 八 여덟 팔", "nine 九 아홉 구", "ten 十 열 십", "eleven 十一",
         "twelve 十二")
    )
    for word in words.split()
}  # fmt: skip
COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})(?:\s+of)?"

_UNITS: dict[str, Unit] = {
    "d": "day", "日": "day", "天": "day", "일": "day",
    "w": "week", "週": "week", "周": "week", "星": "week", "礼": "week", "주": "week",
    "m": "month", "か": "month", "ヶ": "month", "カ": "month", "ヵ": "month", "个": "month", "個": "month",
    "月": "month", "개": "month", "달": "month", "y": "year", "年": "year", "년": "year", "해": "year",
}  # fmt: skip
UNIT = r"(?P<unit>days?|weeks?|months?|years?)"
CJK_UNIT = r"(?P<unit>日|天|일|週間|周|星期|礼拜|주일?|[かヶカヵ]月|[个個]月|개월|달|年|년)"

SHIFTS = {
    "last": -1, "past": -1, "this": 0, "coming": 0, "next": 1, "先": -1, "今": 0, "来": 1, "上": -1, "这": 0, "本": 0,
    "下": 1, "지난": -1, "이번": 0, "다음": 1, "去": -1, "昨": -1, "明": 1, "작": -1, "올": 0, "내": 1,
}  # fmt: skip

CJK_DAY = r"(?P<day>\d{1,2}|[一二三四五六七八九十]{1,3})"
CJK_MONTH = (
    r"(?:(?<!\d)(?P<year>\d{4})\s*[年년]\s*|(?P<year_shift>[去昨今来明]|작|올|내)[年년해][の의]?\s?)?"
    r"(?<!\d)(?P<month>\d{1,2}|[一二三四五六七八九十]{1,2})\s*[月월]"
)
_ENGLISH_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_ENGLISH_YEAR = r"(?:,?\s*(?P<year>\d{4})\b)?"
DATES = (
    r"(?<![\d/])(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)",
    rf"{CJK_MONTH}\s*{CJK_DAY}\s*[日号號일]",
    rf"\b{_ENGLISH_DAY}(?:\s+of)?\s+{MONTH}{_ENGLISH_YEAR}",
    rf"\b{MONTH}\s+(?:the\s+)?{_ENGLISH_DAY}\b{_ENGLISH_YEAR}",
)
"""A day of a month, with or without its year."""

DAY_WORDS = (
    (-2, r"\bday before yesterday\b", "一昨日|おととい|그저께|그제|前天"),
    (-1, r"(?<!before )\byesterday\b|\blast night\b", "(?<!一)昨日|きのう|昨夜|昨晩|어제|어젯밤|昨天|昨晚"),
    (
        0,
        r"\btoday\b|\btonight\b|\bthis (?:morning|afternoon|evening)\b",
        "今日|きょう|今朝|今夜|今晩|오늘|今天|今晚|今早",
    ),
    (1, r"(?<!after )\btomorrow\b", "明日|あした|내일|明天"),
    (2, r"\bday after tomorrow\b", "明後日|あさって|모레|(?<!大)后天"),
    (3, r"\bthree days from now\b", "大后天|しあさって|글피"),
)
"""Days from today, and what they are called in English and in the languages without spaces or with particles."""

WEEKDAYS_OF_WEEKS = (
    r"(?P<shift>先|今|来)週\s?の?(?P<weekday>[月火水木金土日])曜?",
    r"(?P<shift>上|这|本|下)个?(?:周|星期|礼拜)的?(?P<weekday>[一二三四五六日天])",
    r"(?P<shift>지난|이번|다음)\s?주\s?(?P<weekday>[월화수목금토일])요일",
)
"""A weekday of a named calendar week."""
CJK_WEEKDAYS = (
    r"(?P<weekday>[月火水木金土日])曜",
    r"(?P<weekday>[월화수목금토일])요일",
    r"(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])",
)
SHIFTED_UNITS = (
    r"\b(?P<shift>last|this|next) (?P<unit>week|month|year)\b",
    r"(?P<shift>先|今|来)(?P<unit>週|月)",
    r"(?P<shift>上|这|本|下)[个個]?(?P<unit>周|星期|礼拜|月)",
    r"(?P<shift>지난|이번|다음)\s?(?P<unit>주|달|해)",
    r"(?P<shift>[去昨今来明])(?P<unit>年)",
    r"(?P<shift>작|올|내)(?P<unit>년|(?<=올)해)",
)
"""A calendar week, month or year beside the present one."""
YEAR_BEFORE_LAST = r"\byear before last\b|一昨年|おととし|재작년|前年"


def number_of(word: str) -> int:
    """Return the number a word or numeral means; 0 when it means none."""
    if word.isdecimal():
        return int(word)
    if "十" in word:
        tens, _, ones = word.partition("十")
        return 10 * _NUMBERS.get(tens, 1) + _NUMBERS.get(ones, 0)
    return _NUMBERS.get(word, 0)


def unit_of(word: str) -> Unit:
    """Return the unit a word matched by a shape means."""
    return _UNITS[word[0]]


def date_or_none(year: int, month: int, day: int) -> date | None:
    """Return the day, or None when the calendar has none like it."""
    if not (1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]):
        return None
    return date(year, month, day)


def shift(day: date, unit: Unit, count: int) -> date:
    """Return the day `count` units away; beyond the calendar `day` itself (months, years) or OverflowError."""
    if unit in {"day", "week"}:
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    year, month = divmod(day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1), 12)
    if not 1 <= year <= 9999:
        return day
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def start_of(day: date, unit: Unit) -> date:
    """Return the first day of the unit a day is in; weeks begin on Monday."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "month":
        return day.replace(day=1)
    return day.replace(month=1, day=1) if unit == "year" else day


def past_weekday(today: date, weekday: int) -> date:
    """Return the latest such weekday before today."""
    return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
