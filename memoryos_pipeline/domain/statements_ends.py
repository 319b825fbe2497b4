"""Which sentences say that something is over: stopped, cancelled, gone, no longer liked. Rules in four languages. Pure.

What is over is told in more ways than a table of phrases holds, so the words alone decide nothing: only beside a thing
that is known of the speaker, and named in the sentence, do they end it.
"""
# ruff: noqa: E501 - tables of words

import re
import unicodedata

_OVER = {
    "en": re.compile(
        r"\b(?:no longer|any ?more|any longer|no more|quit(?:s|ting)?|stop(?:ped|ping)?|g(?:ive|ave|iven|iving)\b.{0,25}? up|gone off|went off|(?:done|through|finished|over) with"
        r"|finished (?:my|the|with)|fed up|(?:sick|tired|bored) (?:of|with|by)|(?:so|well) over|had enough|los(?:t|ing) (?:all |my |any )*(?:interest|love|taste|appetite)|cancel\w*"
        r"|call(?:ed)? (?:it )?(?:off|quits|a day)|scrapped|dropp(?:ed|ing)|ditched|shelved|abandoned|packed (?:it )?in|f(?:ell|allen) through|off the (?:cards|table)|thing of the past"
        r"|behind me|in the past|thr(?:ew|own) in|turned me off|(?:is|are|was|were)(?:n['’]t| not) (?:happening|going|coming|with us|ours|here|for me)|not (?:going|happening|allergic|into|a fan)"
        r"|won['’]t (?:be )?(?:go|going|make|fly|flying|happen|see|visit\w*)|can['’]t (?:go|make it|stand|bear|do|face|travel)|was(?:n['’]t| never| not)|passed away|died"
        r"|put (?:[\w'’]+ ){0,2}?(?:down|to sleep)|ran away|re-?homed|new (?:home|family|owner)|goodbye|farewell|(?:come|came|coming|taken|took|going) (?:me )?off|clear(?:ed|s)? up|outgr(?:ew|own)"
        r"|(?:is|are|was|has|['’]s)(?: now| all| finally)? (?:gone|over|off(?! to)|history|out(?! of))|went away|(?:don|doesn)['’]t (?:have|need|take|do|like|enjoy|want|care|go|play)|los(?:t|ing)|gave (?:him|her|it) away"
        r"|misdiagnos\w+|mistake|no allergy|fine for me|(?:lives?|living|stays?) with(?! (?:me|us))|not any ?longer|no \w+ for (?:me|us))\b",
        re.IGNORECASE,
    ),
    "ja": re.compile(
        r"やめ(?:た|て|る|ま|よう|ちゃ)|辞め|止め(?:た|まし|て|られ)|卒業し|断(?:った|ち|念)|中止|中断|取りやめ|取り下げ|キャンセル|あきらめ|諦め|挫折|流れ(?:た|ちゃ|てし|まし)|なし(?:に|です|だ)|なくな|終わ(?:り|っ|ら)"
        r"|おしまい|飽き|冷め|うんざり|嫌(?:に|い)|苦手|好き(?:じゃ|では)(?:な|あり)|興味(?:が|は)?(?:な|失)|魅力を感じな|区切り|足を洗|手を引|離れ(?:た|て|まし)|別れ|看取|亡くな|死(?:ん|に)|天国|旅立|息を引|安楽死"
        r"|里親|引き取|引き渡|譲(?:っ|り)|手放|(?:行か|行け|習わ|学ば|飲ま|使わ|でき|やら|し|続か|続け|通わ|い|要ら|いら)(?:な(?:い|く|かった)|ません|そうにな)|もう違|て(?:い)?(?:ない|ません|なく)|過去|昔の|必要(?:が|は)?(?:な|あり)"
        r"|外し|外れ|治(?:っ|り)|消え|よくな|誤診|(?:では|じゃ)(?:な|あり)|平気|大丈夫にな|出なかった|ことは(?:一度も)?な|(?:実家|友人|友達|元彼|元カノ|姉|妹|兄|親)(?:のところ|の家|の?家で|で暮|に引き)|抜けた|飲み(?:切|終)|取り消|予定変更"
    ),
    "ko": re.compile(
        r"그만|끊|관두|관뒀|때려치|접(?:었|기로|어)|포기|단념|취소|무산|없던 일|물 건너|못 (?:가|갈|하게|하|먹게|느)|안 (?:가|갈|해|하|먹|마셔|배|다[녀니]|나[가와]|써|쓰|피|좋아)|지 (?:않|못)|(?:이제|이젠) (?:안|끝|그만|아니|없)|더는|더 이상"
        r"|끝(?:났|이|내|냈)|다 (?:먹|나)|손(?:을)? ?뗐|질(?:렸|려)|지긋지긋|지겨|식었|흥미를 잃|관심(?:이)? ?없|별로|싫(?:어|증)|떠나보|떠났|무지개|죽었|하늘나라|안락사|작별|이별|입양 보|보냈|데려갔|새 (?:가족|주인|집)"
        r"|없어(?:졌|요|$|[.,])|나았|나아(?:서|졌)|사라|완치|극복|오진|아니(?:래|었|라|에|야|$)|적이 없|괜찮|필요 ?없|빼 ?줬|중지|중단|졸업|지난 일|옛날|(?:본가|부모님|누나|언니|형|친구|이모)네?(?:에서| 집에서)|남친네|여친네"
    ),
    "zh": re.compile(
        r"不再|不[^，。]{0,8}了|没(?:法|再)|没有?[^，。]{0,6}(?:兴趣|感觉|热情|过敏|坚持)|戒|停(?:了|掉|用|止|药)|放弃|取消|泡汤|黄了|作罢|算了|拜拜|再见|告别|道别|撂下|腻|厌(?:倦|烦)|受够|烦透|讨厌|退(?:了|掉)|去不(?:了|成)|做不了"
        r"|结束|到此为止|过去(?:的事|式)|不在|没了|去世|死|走丢|送(?:走|人|给)|喵星|彩虹桥|新(?:家|主人)|收养|领走|归[^，。]{1,6}养|好了|好利索|痊愈|消失|没事|误诊|不是|并不|就不|根本不|(?:用|吃)完|失去|搁置|有变|变卦"
        r"|住在我?(?:爸妈|父母|姐|哥|妹|弟|朋友)|跟(?:我|着)?(?:爸妈|父母|朋友|姐|哥|前)"
    ),
}  # fmt: skip
_NOT_YET = {
    "en": re.compile(
        r"\b(?:might|maybe|perhaps|thinking (?:of|about)|consider\w*|wonder\w*|tempted|almost|nearly|never (?:give|stop|quit|get|tire|drop)|(?:can|could)n?['’]t (?:stop|quit|give|get enough|live without|wait)"
        r"|haven['’]t (?:stopped|quit|given|cancel)|not (?:giving|quitting|stopping|tired|bored|over|cancel)|won['’]t (?:stop|quit|give|ever))\b",
        re.IGNORECASE,
    ),
    "ja": re.compile(
        r"かもしれ|かな|迷って|考えて(?:い|る)|やめ(?:られな|たくな|ないで|ません|る気はな|るつもりはな)|飽き(?:な|ませ)|なければ|[たれ]ら、|ほど[^。]*(?:ない|ません)|欠かせな|なし(?:で|じゃ)|だけ(?:では|じゃ)な|しか[^。]*ない|まだ"
    ),
    "ko": re.compile(
        r"까 (?:고민|생각|싶|말)|지도 ?(?:몰|모)|못 (?:끊|그만|참)|포기(?:할 수|는) ?(?:없|안|못)|안 (?:질|끊)|질리지 않|없이는?|없으면|(?:강의|강좌|수업|레슨|학원|회원권|표|티켓)(?:을|를)? 끊|아직|만큼[^.]*없"
    ),
    "zh": re.compile(
        r"也许|可能|说不定|在想|考虑|犹豫|要不要|舍不得|戒不掉|停不下来|(?:从|绝|永远|怎么都?)不(?:会)?|不会(?:放弃|腻|停)|离不开|差点|险些|没有[^，。]{1,10}(?:我)?(?:活不|不行|醒不)|不能没有|还没"
    ),
}  # fmt: skip
_SOMEBODY = {
    "ja": re.compile(
        r"(?:母|父|兄|弟|姉|妹|夫|妻|息子|娘|祖父|祖母|おじ|おば|叔父|叔母|いとこ|甥|姪|友人|友達|親友|同僚|上司|部下|隣|近所|お隣|同居人|ルームメイト|相方|彼|彼女|両親|子ども|先輩|後輩|さん|ちゃん|くん|みんな|誰か|人)(?:は|が|も|って)"
    ),
    "ko": re.compile(
        r"(?:엄마|어머니|아빠|아버지|부모님|형|누나|오빠|언니|동생|아내|남편|아들|딸|할머니|할아버지|이모|고모|삼촌|사촌|조카|친구|절친|동료|상사|부장님?|이웃|옆집|룸메|룸메이트|짝꿍|사람들?|누가|다들)(?:이|가|은|는|도|네|들)? "
    ),
}  # fmt: skip
REVERSIBLE = {"attitude": "likes", "habit": "does", "plan": "planned", "pet": "has", "allergy": "yes"}
"""Attributes of one thing each that can end, with the value that holds until then."""


def says_it_is_over(text: str, lang: str) -> bool:
    """Tell whether a sentence says that something is over, and not that it may be or never will."""
    over, not_yet = _OVER.get(lang, _OVER["en"]), _NOT_YET.get(lang, _NOT_YET["en"])
    return over.search(text) is not None and not_yet.search(text) is None


def names_somebody(text: str, lang: str) -> bool:
    """Tell whether a Japanese or Korean sentence has somebody else as who does or is something."""
    return lang in _SOMEBODY and _SOMEBODY[lang].search(text) is not None


def known_thing(slot: str | None, value: str | None) -> str | None:
    """Return the thing that a live statement's slot is about, when it can end and has not ended yet."""
    parts = (slot or "").split("|")
    is_held = len(parts) == 3 and REVERSIBLE.get(parts[1]) == value
    return parts[2] if is_held and parts[2] != "none" else None


def find_thing(text: str, thing: str, lang: str) -> int:
    """Return where a thing is named in a text, or -1."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    if lang in ("ja", "zh", "ko"):
        return folded.find(thing)
    found = re.search(rf"\b{re.escape(thing)}\b", folded)
    return found.start() if found else -1
