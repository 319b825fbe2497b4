"""What a statement is about when a newer value replaces an older one: residence, job, tastes, habits. Pure."""
# ruff: noqa: E501 - tables with one rule a line

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from memoryos_pipeline.domain import (
    statements_en,
    statements_ja,
    statements_ko,
    statements_spoken_en,
    statements_spoken_ja,
    statements_spoken_ko,
    statements_spoken_zh,
    statements_zh,
)
from memoryos_pipeline.domain.statements import is_about_speaker
from memoryos_pipeline.domain.statements_rules import Frame, Grammar, Rule, spoken

MAX_VALUE_CHARACTERS = 60
MAX_VALUE_WORDS = 5
"""What somebody likes in more words is a clause, not a thing; it gets no slot."""


@dataclass(frozen=True, slots=True)
class Slot:
    """An attribute of the speaker with its value; `negated` when the statement denies it."""

    attribute: str
    value: str
    importance: float
    negated: bool = False


_GRAMMARS = {
    "en": spoken(statements_en.GRAMMAR, statements_spoken_en.FIRST, statements_spoken_en.LAST),
    "ja": spoken(statements_ja.GRAMMAR, statements_spoken_ja.FIRST, statements_spoken_ja.LAST),
    "ko": spoken(statements_ko.GRAMMAR, statements_spoken_ko.FIRST, statements_spoken_ko.LAST),
    "zh": spoken(statements_zh.GRAMMAR, statements_spoken_zh.FIRST, statements_spoken_zh.LAST),
}  # fmt: skip
_NEEDS_SPEAKER = frozenset({"en", "zh"})
"""Languages that name who speaks; the others leave it out."""
_NOT_PEOPLE = frozenset({"habit", "plan", "allergy"})
_HELD = frozenset({"residence", "employer", "occupation", "relationship"})
_ONE_AT_A_TIME = frozenset({"residence", "employer", "occupation", "favourite"})

_PRONOUN_WORDS = """it that this them these those you him her me us there here one what how when where everything
something anything what's your his their to あれ これ それ ここ そこ あそこ 家 そっち こちら あなた 거기 여기 저기 이거 그거 저거
그것 집 당신 너 내일 오늘 어제 때 것 她 他 它 你 你们 他们 这个 那个 这里 那里 这 那 회사 직장 학교 병원 会社 職場 学校 公司 单位 out work 학원 수업 교실 강좌 헬스장 일 仕事 工作"""
_PEOPLE_WORDS = """母 父 両親 兄 弟 姉 妹 夫 妻 息子 娘 祖父 祖母 おじ おば 叔父 叔母 いとこ 甥 姪 友人 友達 親友 同僚 上司 部下 隣の人 同居人
医者 医師 先生 主治医 彼 彼女 彼ら みんな 誰か 엄마 어머니 아빠 아버지 부모님 형 누나 오빠 언니 동생 아내 남편 아들 딸 할머니 할아버지 이모 고모 삼촌 사촌 조카 친구 동료 상사 이웃
룸메 의사 누가 사람 중간에 돼서 하게 거기서 못 他们让 上周 昨天 今天 上个月 这周 现在 最近 医生 大夫 朋友 他们 她们"""
_PRONOUNS = frozenset((_PRONOUN_WORDS + " " + _PEOPLE_WORDS).split())
_LEAD = re.compile(
    r"^(?:(?:to|the|a|an|my|our|any|some|all|eating|drinking|taking|playing) |(?:이제는?|지금은?|이젠|오래|[가-힣\d]{1,3}월(?:부터|에)|[가-힣]{1,4}부터|[가-힣]{1,4}에서|[가-힣]+(?:더니|보니|니까)|지난[가-힣]{1,2}(?:에|부터)?|최근에?|요새|얼마 전(?:에|부터)|작년(?:에|부터)?|방금|드디어|결국|예전엔|예전에는|옛날엔|전에는|한때|또|나중에|요즘은|올해는?|정말|사실|요즘|저는|나는|난|전|저도|나도|아직|그래도|그래서|그리고|근데|하지만|그런데) "
    r"|[一-鿿]{1,4}で(?=[一-鿿ァ-ヶぁ-ん]{2})|原因は|また(?=[一-鿿ァ-ヶ])|毎日|毎朝|毎晩|毎食後に?|一日[一二三四五\d]+回|週に?[一二三四五\d]+回|当分|しばらく|医者に(?:言われて)?|夜に?|早上|晚上|早晨|下午|上周|上个月|这周|本周|昨日|今日|先週|先月|去年|昨年|今年|来月|最近|もう|今|家族で|夫婦で|吃|喝|去(?!年))+(?=\S)",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:\s+(?:anymore|any more|now|a lot|so much|very much|more than \w+|completely|entirely|too|again|at all|idea|thing|plans?))+$|(?:的|了|を|は|が)$",
    re.IGNORECASE,
)
_NOT_EATEN = {
    "vegetarian": "meat pork beef fish seafood", "vegan": "meat pork beef fish seafood dairy eggs",
    "pescatarian": "meat pork beef",
    "ベジタリアン": "肉 豚肉 牛肉 魚 生魚", "菜食主義": "肉 豚肉 牛肉 魚 生魚", "ヴィーガン": "肉 豚肉 牛肉 魚 生魚 卵 乳製品",
    "ビーガン": "肉 豚肉 牛肉 魚 生魚 卵 乳製品",
    "채식주의자": "고기 생선 조개 해산물", "채식": "고기 생선 조개 해산물", "비건": "고기 생선 조개 해산물 달걀 유제품",
    "吃素": "肉 猪肉 牛肉 鱼 海鲜", "吃纯素": "肉 猪肉 牛肉 鱼 海鲜 鸡蛋 奶制品",
    "素": "肉 猪肉 牛肉 鱼 海鲜", "素食": "肉 猪肉 牛肉 鱼 海鲜", "纯素": "肉 猪肉 牛肉 鱼 海鲜 鸡蛋 奶制品",
}  # fmt: skip
_MEAT = {"en": "meat", "ja": "肉", "ko": "고기", "zh": "肉"}
_SAME_KIND = {"movie": "film"}
_CLAUSES = re.compile(r"ので|ため|[、,，]")
"""A plan belongs to who speaks of it, whatever the reason given before it is about."""
_KOREAN_TOPIC = re.compile("[가-힣](?:은|는|이|가)$")
_DENIED_OR_PAST = re.compile(
    r"\bused to\b|\b(?:never|not|n't|almost|nearly) (?:\w+ )?(?:moved|relocated|live|living)|住んでいまし|住んでいた|住んでた|以前は"
    r"|살았|살지 않|예전에는|以前住|曾经住|(?:催|劝|让|叫|逼|求)我|って[^、。]{0,6}言われ|もあり|오라고|不住在|没有?搬|搬到.{0,8}之前"
)
_DATED_EVENT = (
    re.compile(r"\b[Mm]y (?:next )?(?P<v>[a-z][a-z ]{2,25}?)(?:'s| is| was moved| got moved| has been moved) (?:now )?(?:on|to|in|at|set for|scheduled for|tomorrow|next)\b"),
    re.compile(r"(?P<v>試験|面接|手術|出産|結婚式|発表会?|大会|検査|引っ越し|予定日|締め切り|旅行|合宿|卒業式|入学式)は"),
    re.compile(r"(?P<v>시험|면접|수술|결혼식|발표|대회|검사|이사|마감|여행|졸업식|입학식|출시)(?:은|는|이|가) "),
    re.compile(r"(?P<v>考试|面试|手术|婚礼|比赛|检查|搬家|预产期|截止日期|旅行|毕业典礼|开学|演出)(?:是|在|改到|改成|定在|推迟到)"),
)  # fmt: skip


def find_slot(text: str, lang: str) -> Slot | None:
    """Return the replaceable attribute a statement sets, in whatever language its rules are, or None."""
    found = list(_found(text, lang))
    if found and found[0].negated:  # of "gave up Lyon and settled in Boston" the half that holds from now on
        return next((slot for slot in found if not slot.negated and slot.attribute in _HELD), found[0])
    return found[0] if found else None


def find_slots(text: str, lang: str) -> tuple[Slot, ...]:
    """Return every attribute a statement sets, also those that follow from one: a vegetarian eats no fish."""
    found = list(_found(text, lang))
    implied = [one for slot in found if slot.attribute == "diet" for one in _implied_by_diet(slot, lang)]
    return tuple({slot.attribute: slot for slot in (*implied, *found)}.values())


def _implied_by_diet(slot: Slot, lang: str) -> Iterator[Slot]:
    if slot.negated:
        yield Slot(f"eats|{_MEAT.get(lang, 'meat')}", "yes", slot.importance)
    for food in _NOT_EATEN.get(slot.value, "").split():
        yield Slot(f"eats|{food}", "no", slot.importance, negated=True)


def _found(text: str, lang: str) -> Iterator[Slot]:
    grammar = _GRAMMARS.get(lang, _GRAMMARS["en"])
    for frame in grammar.frames:
        if slot := _framed(frame, grammar, text, lang=lang):
            yield slot
    for rule in grammar.rules:
        for match in rule.pattern.finditer(text):
            if slot := _ruled(rule, grammar, match, lang=lang):
                yield slot


def _framed(frame: Frame, grammar: Grammar, text: str, *, lang: str) -> Slot | None:
    """Return what the last item that is not left behind says, when the sentence is about its speaker."""
    if frame.cue.search(text) is None or (lang in _NEEDS_SPEAKER and grammar.own.search(text) is None):
        return None
    items = list(frame.item.finditer(text))
    kept = [match for match in items if not _is_left(grammar, text, match.span("v"))]
    if not kept:
        return None
    before = frame.item.sub("", text[: kept[-1].start("v")])
    if not _is_own(grammar, before, lang):
        return None
    return Slot(frame.attribute, normalize_value(kept[-1]["v"]), frame.importance)


def _ruled(rule: Rule, grammar: Grammar, match: re.Match[str], *, lang: str) -> Slot | None:
    text, span = match.string, _value_span(match)
    before = text[: span[0]]
    if rule.attribute == "plan":
        before = _CLAUSES.split(before)[-1]
    if not _is_own(grammar, before, lang) and not _is_own_by_itself(grammar, match, lang):
        return None
    if rule.attribute in _ONE_AT_A_TIME and _is_left(grammar, text, span):
        return None
    if rule.attribute == "residence" and _DENIED_OR_PAST.search(text):
        return None
    return _slot(rule, grammar, match)


def _is_own(grammar: Grammar, before: str, lang: str) -> bool:
    """Tell whether what follows is about who speaks: no other person was named since they last spoke of themselves."""
    others = [found.end() for found in grammar.other.finditer(before)]
    if others and grammar.own.search(before, others[-1]) is None:
        return False
    return is_about_speaker(before, lang)


_AGENTS = re.compile(
    r"\b(?:[Tt]he |[Mm]y |[Aa] )?(?:doctor|GP|specialist|dentist|physician|nurse|allergist)s?\b"
    r"|(?:医者|医師|主治医|病院|(?:かかりつけの)?先生)(?:が|は|に|の)|(?:의사|병원)[가-힣 ]{0,5}?(?:이|가|은|는|에서)? |(?:医生|大夫|医院)"
)
"""Who may end something of the speaker's: a doctor takes them off a medicine."""


def is_own_at(text: str, at: int, lang: str) -> bool:
    """Tell whether a sentence is about who speaks where it names a thing, whoever did something to it."""
    grammar = _GRAMMARS.get(lang, _GRAMMARS["en"])
    return _is_own(grammar, _AGENTS.sub("", text[:at]), lang)


def _is_own_by_itself(grammar: Grammar, match: re.Match[str], lang: str) -> bool:
    """Tell whether a phrase without a value begins with who speaks: "that was my brother, I have no allergies"."""
    has_value = match.re.groupindex.keys() & {"v", "w"}
    return lang in _NEEDS_SPEAKER and not has_value and grammar.own.match(match.group()) is not None


def _is_left(grammar: Grammar, text: str, span: tuple[int, int]) -> bool:
    """Tell whether a value is what is left behind: sold, given up, "not" it, "instead of" it."""
    return bool(grammar.left_before.search(text[: span[0]]) or grammar.left_after.match(text, span[1]))


def _value_span(match: re.Match[str]) -> tuple[int, int]:
    named = [name for name in ("v", "w", "x") if name in match.re.groupindex and match[name]]
    return match.span(named[0]) if named else match.span()


def find_own_name(text: str, speaker: str, lang: str) -> Slot | None:
    """Return the name slot when a speaker says who they are: "I'm Maya", 陽斗です, 지우예요, 我是阿林."""
    name = re.escape(speaker.strip())
    patterns = {
        "en": rf"\bI(?:'m|’m| am) {name}\b",
        "ja": rf"(?:^|[、。はが]){name}(?:です|といい|と申し|と言い)",
        "ko": rf"(?:^|[\s,]){name}(?:예요|이에요|입니다|이?라고)",
        "zh": rf"我(?:是|叫){name}(?=[，。！\s]|$)",
    }
    if not name or lang not in patterns or not re.search(patterns[lang], text):
        return None
    return Slot("name", normalize_value(speaker), 0.95)


def find_dated_event(text: str, event_at: datetime | None, occurred_at: datetime) -> Slot | None:
    """Return the slot of a coming event's date (my exam is on Friday), which moves when the event is moved."""
    if event_at is None or event_at.date() < occurred_at.date():
        return None
    for pattern in _DATED_EVENT:
        if match := pattern.search(text):
            return Slot(f"date|{normalize_value(match['v'])}", event_at.date().isoformat(), 0.6)
    return None


def _slot(rule: Rule, grammar: Grammar, match: re.Match[str]) -> Slot | None:
    groups = match.groupdict()
    if rule.value is not None and not groups.keys() & {"v", "w"}:
        none_of_many = rule.value == "none" and rule.attribute != "diet"
        attribute = f"{rule.attribute}|none" if none_of_many else rule.attribute
        return Slot(attribute, rule.value, rule.importance, negated=rule.negated)
    value = normalize_value(groups.get("v") or groups.get("w") or groups.get("x") or "")
    if rule.attribute == "habit":
        value = grammar.generic.sub("", value)
    is_person = rule.attribute in _NOT_PEOPLE and grammar.other.match(value) is not None
    if not value or is_person or value in _PRONOUNS or value.split()[0] in _PRONOUNS:
        return None
    words = value.split()
    is_relative = rule.attribute == "occupation" and words[-1] in {"사람", "일"}
    if len(words) > MAX_VALUE_WORDS or (not is_relative and any(_KOREAN_TOPIC.search(word) for word in words[:-1])):
        return None  # a clause, or somebody else's
    if rule.value is not None:
        return Slot(f"{rule.attribute}|{value}", rule.value, rule.importance, negated=rule.negated)
    if groups.get("k"):
        kind = normalize_value(groups["k"])
        return Slot(f"{rule.attribute}|{_SAME_KIND.get(kind, kind)}", value, rule.importance)
    return Slot(rule.attribute, value, rule.importance)


def normalize_value(value: str) -> str:
    """Return a value as compared: forms and case folded, articles and filler off, bounded."""
    folded = unicodedata.normalize("NFKC", value).casefold().replace("’", "'").replace("|", " ").strip(" .,'\"")
    bare = _TAIL.sub("", _LEAD.sub("", " ".join(folded.split())))
    return bare[:MAX_VALUE_CHARACTERS].strip()
