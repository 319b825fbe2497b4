"""Which parts of a life a statement touches, what names stand in it, and whether it corrects something. Pure."""
# ruff: noqa: E501 - tables with one rule a line

import re
from dataclasses import dataclass

_TOPICS: dict[str, tuple[float, str]] = {
    "health": (
        0.8,
        r"\b(?:allerg\w+|doctor|hospital|surgery|surgeon|diagnos\w+|medicine|medication|pills?|injur\w+|fractur\w+|sick|illness"
        r"|disease|blood pressure|heart|infect\w+|pregnan\w+|therapy|cardiologist|penicillin|hives|anxiety|depress\w+)\b"
        r"|アレルギー|病院|医者|手術|薬|怪我|けが|骨折|病気|血圧|妊娠|産婦人科|腎臓|検査|健診|お腹をこわ|つわり"
        r"|알레르기|병원|의사|수술|약을|다쳤|골절|인대|깁스|빈혈|혈압|임신|건강검진|아파|철분"
        r"|过敏|医院|医生|手术|药|受伤|骨折|生病|血压|怀孕|体检|崴了|住院",
    ),
    "family": (
        0.7,
        r"\b(?:mother|mom|mum|father|dad|parents?|brother|sister|wife|husband|son|daughter|kids?|child(?:ren)?|baby|grand\w+"
        r"|uncle|aunt|cousin|fianc\w+|boyfriend|girlfriend|partner|married|wedding|divorced)\b"
        r"|母|父|両親|兄|弟|姉|妹|妻|夫|息子|娘|子ども|子供|赤ちゃん|祖父|祖母|家族|彼氏|彼女|結婚|離婚"
        r"|엄마|어머니|아빠|아버지|부모|형|누나|오빠|언니|동생|아내|남편|아들|딸|아이|할머니|할아버지|가족|결혼|이혼"
        r"|妈|爸|父母|哥哥|弟弟|姐姐|妹妹|老婆|妻子|老公|丈夫|先生在|儿子|女儿|孩子|爷爷|奶奶|家人|结婚|离婚",
    ),
    "home": (
        0.65,
        r"\b(?:moved|moving|apartment|house|home|lease|landlord|rent|live in|living in)\b"
        r"|引っ越|住んで|部屋|家賃|大家|アパート|이사|살아|살고|집주인|월세|전세|원룸|搬|住在|房东|房租|租约|公寓",
    ),
    "pets": (
        0.6,
        r"\b(?:dog|cat|puppy|kitten|parrot|rabbit|hamster|turtle|pet|greyhound|vet)\b"
        r"|犬|猫|金魚|うさぎ|ペット|カメ|강아지|고양이|앵무새|토끼|반려|狗|猫|乌龟|兔子|宠物",
    ),
    "work": (
        0.6,
        r"\b(?:work|job|boss|office|company|colleague|coworker|career|promot\w+|hired|fired|salary|project|client|shop|business"
        r"|technician|teacher|engineer|nurse)\b"
        r"|仕事|会社|職場|上司|同僚|転職|就職|教えて|担任|顧問|店を|일하|회사|직장|상사|동료|취직|이직|프로젝트|만드는 사람"
        r"|工作|公司|上班|老板|同事|跳槽|书店|店里|开店|项目",
    ),
    "study": (
        0.55,
        r"\b(?:exam|school|university|college|course|class|study\w*|degree|thesis|graduat\w+|lesson)\b"
        r"|試験|学校|大学|授業|勉強|卒業|시험|학교|대학|수업|공부|졸업|考试|学校|大学|上课|学习|毕业|小学",
    ),
    "travel": (
        0.55,
        r"\b(?:trip|travel\w*|flight|fly(?:ing)?|vacation|holiday|hotel|airport|visit(?:ed|ing)?)\b"
        r"|旅行|飛行機|空港|宿|合宿|観光|여행|비행기|휴가|공항|다녀오|旅行|旅游|飞机|机场|酒店|出差|订了票",
    ),
    "food": (
        0.5,
        r"\b(?:coffee|tea|food|eat(?:ing)?|ate|cook\w*|bak(?:e|ed|ing)|vegetarian|vegan|restaurant|dinner|lunch|breakfast|bread)\b"
        r"|食べ|飲み|飲む|料理|コーヒー|お茶|牛乳|먹|마시|요리|커피|고기|생선|밥|吃|喝|做饭|咖啡|茶|菜",
    ),
    "interests": (
        0.5,
        r"\b(?:hobby|hobbies|marathon|ran|running|guitar|piano|choir|sing\w*|paint\w*|book|reading|film|movie|music|game|climb\w*"
        r"|swim\w*|yoga|garden\w*|photograph\w*|concert)\b"
        r"|趣味|望遠鏡|天文|星|音楽|映画|本を|ゲーム|山に|走っ|写真|취미|음악|영화|책|게임|등산|볼더링|암벽|도예|녹음"
        r"|爱好|音乐|电影|书|游戏|爬山|跑步|二胡|围棋|钢琴|摄影",
    ),
}
_PATTERNS = {name: (weight, re.compile(source, re.IGNORECASE)) for name, (weight, source) in _TOPICS.items()}
SMALL_IMPORTANCE = 0.3

_RELATIVES = (
    r"(?:friend|mother|father|brother|sister|wife|husband|son|daughter|niece|nephew|boss|manager|partner|cousin|aunt|uncle|colleague"
    r"|co-?worker|neighbou?r|boyfriend|girlfriend|room ?mate|flat ?mate|teacher|dentist|doctor|landlord|grandmother|grandfather)"
)
_PERSONS = (
    re.compile(rf"\b(?:[Mm]y|[Oo]ur) (?:\w+ )?(?P<t>{_RELATIVES}),? (?P<v>[A-Z][a-z'’-]+)"),
    re.compile(r"\b[Mm]y (?:[a-z-]+ )?(?P<t>(?:step|god|grand|half-)[a-z]+|[a-z]+-in-law|coach|trainer|tutor|physio|therapist|lawyer|classmate|roomie|ex),? (?P<v>[A-Z][a-z'’-]+)"),
    re.compile(r"(?P<t>[一-鿿ァ-ヶー]{1,6}(?:コーチ|親|兄|姉|弟|妹|士|師|家|員)|コーチ|整体|大家|義兄|義姉|甥|姪)の(?P<v>[一-鿿ァ-ヶー]{1,6}?)(?=さん|先生|[はがをにもと、])"),
    re.compile(r"(?P<t>[가-힣]{2,6}) (?P<v>[가-힣]{2,3}) (?=씨|님)"),
    re.compile(r"(?P<t>外甥女?|干[爸妈]|姐夫|嫂子|教练|理疗师|房东|师傅|闺蜜|堂[哥弟姐妹])(?P<v>[\u4e00-\u9fff]{2,3}?)(?=的|在|和|，|。|说|是|去|来|对|迷|烦|讨厌|喜欢|爱|搬|住|有|原来|$)"),
    re.compile(r"(?P<t>妻|夫|友人|友達|上司|部下|同僚|弟|妹|兄|姉|息子|娘|姪|甥|いとこ|叔父|叔母|隣|先生|歯医者|大家|彼氏|彼女)の(?P<v>[一-鿿ァ-ヶー]{1,6})(?=さん|[とはがをにも、])"),
    re.compile(
        r"(?P<t>친구|동생|남동생|여동생|언니|오빠|누나|형|아들|딸|상사|동료|조카|사촌|이웃|삼촌|이모|고모|선생님|의사|남편|아내) (?P<v>[가-힣]{2,3}?)"
        r"(?=이?[는가를와랑]|은|이|을|과|의|\s)"
    ),
    re.compile(
        r"(?P<t>朋友|女儿|儿子|先生|丈夫|妻子|老婆|老公|同事|老板|弟弟|妹妹|哥哥|姐姐|侄女|侄子|表[哥弟姐妹]|邻居|牙医|医生|房东|叔叔|阿姨)(?P<v>[\u4e00-\u9fff]{2,3}?)"
        r"(?=的|在|和|，|。|说|是|去|来|对|讨厌|喜欢|爱|搬|住|有|$)"
    ),
)  # fmt: skip
_NAMES = (
    re.compile(r"(?<=[a-z,;] )(?P<v>[A-Z][a-z'’-]+(?: [A-Z][a-z'’-]+){0,3})"),
    re.compile(r"[「『《“](?P<v>[^」』》”]{2,20})[」』》”]"),
    re.compile(r"(?P<v>[ァ-ヶー]{3,20})"),
)
_NOT_NAME_WORDS = """I I'm I've I'll I'd Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March
April May June July August September October November December"""
_NOT_NAMES = frozenset(_NOT_NAME_WORDS.split())
MAX_ENTITIES = 8

_CORRECTION = re.compile(
    r"^(?:no|nope|sorry|actually|wait|correction)\b[\s,.!:;—-]+.*?(?:\bi (?:said|meant)\b|\bnot\b|n't\b|\bthat was\b|\bit(?:'s| is| was)\b"
    r"|\bhave no\b)|^i (?:said|meant) |\bnot (?:\w+ ){0,3}\w+, but\b|\bi said [^,.]+, not \b"
    r"|^(?:いや|いえ|いいえ|違い|ちがい|違う|訂正)[、。 ]?.*(?:では|じゃ)な(?:くて|く)|(?:では|じゃ)な(?:くて|く)、?[^。]{1,20}(?:です|だ|と言)"
    r"|^(?:아니|아뇨|아니요|아니에요)[,. ]+.*(?:아니라|말했|했잖|라고 했)|(?:이|가) 아니라 \S+"
    r"|^(?:不|不对|错了|不不)[，,。 ].*(?:是|说)|不是[^，。]{1,12}[，,]?(?:而)?(?:是|叫)|我说的是",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(
    r"\b(?:wrong|incorrect|mistaken?|mixed (?:\w+ )?up|misunderst\w+|misheard|confused|never said|didn't say|i said|i meant|actually|correction|that's not|no,|nope)"
    r"|間違|違(?:い|う|って)|ちが(?:い|う)|誤解|勘違い|訂正|言って(?:い)?(?:ません|ない)|言いました|^(?:いや|いえ|いいえ)"
    r"|틀렸|틀린|아니에요|잘못|오해|착각|한 적 ?없|했잖|라고 했|말했|^(?:아니|아뇨)"
    r"|错|不对|搞混|弄混|误会|没说|说的是|记反|更正",
    re.IGNORECASE,
)
"""Words by which somebody takes back what the other said."""
_WORDS = r"[\w' -]{2,30}?"
_SWAPPED = (
    re.compile(rf"\b(?:never said|didn't say|don't mean|is not|isn't|wasn't|not) (?P<wrong>{_WORDS}),? (?:but|(?:i said|i meant|it is|it's|that is|it was|rather)) (?P<right>{_WORDS})(?=[,.!;]|$)", re.IGNORECASE),
    re.compile(rf"\b(?:i said|i meant|it is|it's|that is|that's|it was|(?:live|work)s? (?:in|at)) (?P<right>{_WORDS}),?(?: and| but)? (?:not|never) (?P<wrong>{_WORDS})(?=[,.!;]|$)", re.IGNORECASE),
    re.compile(r"(?P<wrong>[^、。\s]{1,12}?)(?:では|じゃ)な(?:くて|く)、?(?P<right>[^、。\s]{1,12}?)(?:です|だ|と|。|$)"),
    re.compile(r"(?P<wrong>[^、。\s]{1,12}?)(?:とは|だとは|なんて)言って(?:い)?(?:ません|ない)[^、。]{0,4}[、。]\s*(?P<right>[^、。\s]{1,12}?)(?:です|だ|と|。|$)"),
    re.compile(r"(?P<wrong>[가-힣A-Za-z0-9]+?)(?:이|가) 아니라 (?P<right>[가-힣A-Za-z0-9]+?)(?:이라고|라고|이에요|예요|입니다|이야|야|에|[.]|$)"),
    re.compile(r"(?P<wrong>[가-힣A-Za-z0-9]+?)(?:이라고|라고|이라|라)? (?:한|말한) 적 ?(?:이 )?없[가-힣]*[,.]? (?P<right>[가-힣A-Za-z0-9]+?)(?:이라고|라고|이에요|예요|입니다|이야|야|[.]|$)"),
    re.compile(r"(?P<wrong>[가-힣A-Za-z0-9]+?) 말고 (?P<right>[가-힣A-Za-z0-9]+?)(?:이라고|라고|이에요|예요|입니다|이야|야|[.]|$)"),
    re.compile(r"不是“?(?P<wrong>[^，。“”]{1,10}?)”?[，,]?(?:而)?(?:是叫|是|叫)“?(?P<right>[^，。“”]{1,10})"),
    re.compile(r"(?:没说|没有说)过?“?(?P<wrong>[^，。“”]{1,10}?)”?[，,](?:我)?(?:说的)?(?:是)“?(?P<right>[^，。“”]{1,10})"),
    re.compile(r"(?:说的)?是“?(?P<right>[^，。“”]{1,10}?)”?[，,](?:而)?不是“?(?P<wrong>[^，。“”]{1,10})"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Correction:
    """A statement that takes something back; what was wrong and what is right when it says both."""

    wrong: str | None
    right: str | None


def find_topics(text: str) -> tuple[str, ...]:
    """Return the parts of a life a text touches, as fixed codes, the weightiest first."""
    return tuple(name for name, (_, pattern) in _PATTERNS.items() if pattern.search(text))


def topic_importance(topics: tuple[str, ...]) -> float:
    """Return the importance, 0..1, that topics alone give."""
    return max((_PATTERNS[name][0] for name in topics), default=SMALL_IMPORTANCE)


def find_entities(text: str, speaker: str) -> tuple[tuple[str, str], ...]:
    """Return at most eight names with their type, person or name, in the order they stand."""
    found: dict[str, tuple[int, str]] = {}
    for kind, patterns in (("person", _PERSONS), ("name", _NAMES)):
        for match in (match for pattern in patterns for match in pattern.finditer(text)):
            name = match["v"].strip().removesuffix("'s").removesuffix("’s")
            if name not in _NOT_NAMES and name != speaker:
                found.setdefault(name, (match.start("v"), kind))
    ordered = sorted(found.items(), key=lambda item: item[1][0])
    return tuple((name, kind) for name, (_, kind) in ordered[:MAX_ENTITIES])


def find_ties(text: str) -> dict[str, str]:
    """Return what the people named in a text are to who speaks: name to sister, 上司, 친구, 朋友."""
    found = (match for pattern in _PERSONS for match in pattern.finditer(text))
    return {match["v"].strip(): match["t"].casefold() for match in found}


def find_correction(text: str) -> Correction | None:
    """Return what a statement corrects, or None when it corrects nothing."""
    swapped = next((match for pattern in _SWAPPED if (match := pattern.search(text))), None)
    if _CORRECTION.search(text) is None and (swapped is None or _TAKES_BACK.search(text) is None):
        return None
    if swapped is None:
        return Correction(None, None)
    return Correction(swapped["wrong"].strip(), swapped["right"].strip())
