"""What a statement is about when a newer value replaces an older one: residence, job, tastes, habits. Pure."""
# ruff: noqa: E501 - tables with one rule a line

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from memoryos_pipeline.domain.statements import is_about_speaker

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


@dataclass(frozen=True, slots=True)
class _Rule:
    attribute: str
    pattern: re.Pattern[str]
    importance: float
    value: str | None = None
    """The value when it is not what the group `v` matched. With one, the group names the thing of the attribute."""
    negated: bool = False


_PLACE = r"(?P<v>(?:[A-Z][\w'’.-]*)(?:,? (?:[A-Z][\w'’.-]*))*)"
_THING = r"(?P<v>[^,.;!?()]{2,50}?)(?=[,.;!?()]|$| (?:and|but|because|so|since|when|anymore|any more|these days|now|in the|at the|yesterday|today|(?:last|this|next) (?:night|week|month|year|summer|spring))\b)"
_HAVE = r"(?:have |'ve |’ve )?"
_JOBS = (
    r"(?:teacher|engineer|nurse|doctor|physician|surgeon|designer|developer|programmer|technician|lawyer|accountant|chef"
    r"|cook|baker|barista|waiter|waitress|writer|journalist|editor|artist|musician|photographer|actor|actress|student"
    r"|scientist|researcher|professor|manager|consultant|analyst|architect|electrician|plumber|carpenter|mechanic|driver"
    r"|pilot|farmer|librarian|translator|pharmacist|dentist|veterinarian|vet|therapist|psychologist|counselor|tutor|coach"
    r"|salesperson|cashier|clerk|secretary|firefighter|police officer|soldier|freelancer|entrepreneur|founder|tuner)"
)
_JOBS_JA = "教師|先生|教員|医師|医者|看護師|薬剤師|エンジニア|プログラマー|会社員|公務員|学生|大学生|高校生|デザイナー|料理人|美容師|弁護士|編集者|作家|記者|研究者|主婦|保育士|介護士|運転手|農家|店長|翻訳者"
_JOBS_KO = "선생님|교사|의사|간호사|약사|개발자|엔지니어|프로그래머|회사원|공무원|대학생|학생|디자이너|요리사|미용사|변호사|편집자|작가|기자|연구원|주부|바리스타|사진가|번역가|사장|매니저"
_JOBS_ZH = "老师|教师|医生|护士|药剂师|工程师|程序员|公务员|学生|大学生|设计师|厨师|理发师|律师|编辑|作家|记者|研究员|司机|农民|店长|老板|翻译|会计|销售|摄影师"
_FOODS = "meat|fish|dairy|gluten|eggs|pork|beef|seafood"


def _rules(*rows: tuple[object, ...]) -> tuple[_Rule, ...]:
    return tuple(
        _Rule(str(row[0]), re.compile(str(row[2])), float(str(row[1])), *row[3:])  # type: ignore[arg-type]
        for row in rows
    )


_ENGLISH = _rules(
    ("name", 0.95, r"\b(?:[Mm]y name is|[Mm]y name's|I(?:'m|’m| am) called|[Cc]all me) (?P<v>[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)?)"),
    ("residence", 0.9, rf"\b(?:I|[Ww]e)(?: \w+ly| just| now| currently|{_HAVE})* ?(?:moved|relocated) (?:back )?(?:over )?to {_PLACE}"),
    ("residence", 0.9, rf"\b(?:I|[Ww]e)(?: now| currently| still| both)* (?:live|reside) (?:here )?in {_PLACE}"),
    ("residence", 0.9, rf"\b(?:I(?:'m|’m| am)|[Ww]e(?:'re|’re| are))(?: now| currently| still)* living in {_PLACE}"),
    ("residence", 0.9, rf"\b[Oo]ur (?:home|apartment|house|place|flat)(?: \w+)? (?:is in|is|in) {_PLACE}"),
    ("residence", 0.9, rf"\b[Mm]y (?:home|apartment|house|place|flat)(?: \w+)? (?:is in|is|in) {_PLACE}"),
    ("residence", 0.9, rf"\b(?:I|[Ww]e)(?: \w+ly| just| now|{_HAVE})* ?(?:moved|relocated) (?:here )?from {_PLACE.replace('?P<v>', '?:')} to {_PLACE}"),
    ("residence", 0.9, rf"\b(?:I|[Ww]e)(?: \w+ly| just| now|{_HAVE})* ?settled (?:down )?in {_PLACE}"),
    ("residence", 0.9, rf"\b(?:I|[Ww]e)(?: \w+ly| just|{_HAVE})* ?(?:signed (?:a|the|our) lease|(?:bought|rented) (?:a|our)(?: \w+){{0,2}} (?:house|home|flat|apartment|condo)) in {_PLACE}"),
    ("employer", 0.85, rf"\b(?:I|[Ww]e)(?: now| currently)* work (?:at|for) {_PLACE}"),
    ("employer", 0.85, rf"\bI{_HAVE}? ?(?:started|joined|got hired|began working)(?: \w+)*? at {_PLACE}"),
    ("occupation", 0.85, rf"\bI(?:'m|’m| am)(?: now)? an? (?P<v>(?:[\w-]+ ){{0,3}}{_JOBS})\b"),
    ("occupation", 0.85, r"\bI(?: now| currently)? work as an? (?P<v>[\w-]+(?: [\w-]+){0,3})"),
    ("occupation", 0.85, r"\bI (?P<v>[a-z]+(?: [\w-]+){0,4}?) for a living\b"),
    ("occupation", 0.85, r"\bI (?P<v>teach (?!myself|my|him|her|them)[\w-]+(?: [\w-]+){0,2}?) (?:at|in) (?:an? |the |our )?(?:[\w-]+ )*(?:school|college|university|academy)\b"),
    ("age", 0.6, r"\bI(?:'m|’m| am| just turned| turned) (?P<v>\d{1,2})(?: years old)?(?= ?(?:[.,!]|$| (?:today|now|years|yesterday)))"),
    ("birthday", 0.9, r"\b[Mm]y birthday is (?:on )?(?P<v>[A-Z]\w+ \d{1,2}|\d{1,2} [A-Z]\w+)"),
    ("relationship", 0.85, r"\b(?:I|[Ww]e) (?:just )?got (?P<v>married|engaged|divorced)"),
    ("relationship", 0.85, r"\bI(?:'m|’m| am)(?: now| newly)? (?P<v>married|engaged|divorced|single|widowed)\b"),
    ("favourite", 0.6, r"\b[Mm]y (?:all-time |absolute |new )?favou?rite (?P<k>[\w ]{2,25}?) is (?P<v>[^,.;!?]{2,40})"),
    ("allergy", 0.95, r"\bI (?:have|'ve got) no (?:\w+ )?allergies", "none", True),
    ("allergy", 0.95, rf"\bI(?:'m|’m| am) not allergic to {_THING}", "no", True),
    ("allergy", 0.95, rf"\bI(?:'m|’m| am)(?: \w+ly)? (?:allergic|intolerant) to {_THING}", "yes"),
    ("allergy", 0.95, rf"\b[Ii] (?:react badly to|break out in hives from|can't tolerate) {_THING}", "yes"),
    ("allergy", 0.95, r"\bI have an? (?P<v>[\w ]{2,25}?) allergy", "yes"),
    ("diet", 0.8, r"\bI(?:'m|’m| am| became|'ve become| went)(?: now| a| strictly| still)* (?P<v>vegetarian|vegan|pescatarian)\b"),
    ("eats", 0.7, rf"\bI(?: do not| don't| don’t| no longer|'ve stopped| stopped)(?: ever)? eat(?:ing)? (?:any )?(?P<v>{_FOODS})\b", "no", True),
    ("eats", 0.7, rf"\bI(?: do not| don't| don’t| no longer|'ve stopped| stopped)(?: ever)? eat(?:ing)? (?:any )?(?:{_FOODS})(?:, (?:or )?| or | and )(?P<v>{_FOODS})\b", "no", True),
    ("eats", 0.7, rf"\bI(?: now| started to| started| can| 've started)* (?:eat|eating) (?P<v>{_FOODS})(?: again| now)", "yes"),
    ("plan", 0.55, rf"\b(?:I(?:'m|’m| am)|[Ww]e(?:'re|’re| are))(?: now)? (?:going|flying|travell?ing) to {_PLACE}", "planned"),
    ("plan", 0.55, rf"\b(?:planning|planned|booked) (?:a |our |my )?(?:trip|flights?|holiday|vacation) to {_PLACE}", "planned"),
    ("plan", 0.55, rf"\b(?:I|[Ww]e){_HAVE}? ?(?:cancell?ed|called off|postponed|put off|given up on|gave up on)(?: (?:the|our|my))?(?: (?:trip|flights?|holiday|vacation))?(?: to)? {_PLACE}", "dropped", True),
    ("plan", 0.55, rf"\b(?:I|[Ww]e){_HAVE}? ?(?:decided on|settled on) {_THING}", "planned"),
    ("plan", 0.55, rf"\b(?:I|[Ww]e){_HAVE}? ?(?:decided against|ruled out|dropped the idea of) {_THING}", "dropped", True),
    ("habit", 0.6, rf"\bI{_HAVE}? ?(?:given up|gave up|quit|stopped drinking|stopped smoking|cut out) {_THING}", "quit", True),
    ("habit", 0.6, rf"\bI{_HAVE}? ?(?:took up|taken up) {_THING}", "does"),
    ("attitude", 0.6, rf"\bI(?: \w+ly| still| now| just)* (?:hate|dislike|loathe|detest|(?:can't|can’t|cannot) (?:stand|bear)"
     rf"|(?:don't|don’t|do not|no longer)(?: really)? (?:like|love|enjoy)) {_THING}", "dislikes", True),
    ("attitude", 0.6, rf"\bI(?:'m|’m| am) not (?:a (?:big )?fan of|into|fond of) {_THING}", "dislikes", True),
    ("attitude", 0.6, rf"\bI(?: \w+ly| still| now| just| do)* (?:love|like|enjoy|adore|prefer) {_THING}", "likes"),
    ("attitude", 0.6, rf"\bI(?:'m|’m| am)(?: really| so| super| very| \w+ly)? (?:a (?:big |huge )?fan of|into|fond of) {_THING}", "likes"),
)  # fmt: skip
_JA_PLACE = r"(?P<v>[一-鿿ァ-ヶーA-Za-z]{2,12})"
_JA_THING = r"(?:もう)?(?P<v>(?:[^、。！\sはがをも]|も(?=の)){1,20}?)"
_JAPANESE = _rules(
    ("name", 0.95, r"名前は(?P<v>[^、。\sがをはにで]{1,12}?)(?:です|だ|と(?:いい|申し|言い))"),
    ("name", 0.95, r"(?:^|[、。]|私は|僕は)(?P<v>[^、。\sはが]{1,12})と(?:いいます|申します|言います)"),
    ("residence", 0.9, rf"{_JA_PLACE}(?:に|へ)(?:引っ越し(?:た|て|まし)|移り住(?:んだ|みま)|移住し(?:た|て|まし)|越して(?:来|き))"),
    ("residence", 0.9, rf"{_JA_PLACE}に住(?:んでいます|んでる|んでいる|んでます|み始め)"),
    ("residence", 0.9, rf"{_JA_PLACE}在住"),
    ("residence", 0.9, rf"{_JA_PLACE}(?:の|にある)[^、。はが]{{0,10}}(?:家|部屋|マンション|アパート)を(?:契約しま?し?た|借りまし?た|買いました|買った)"),
    ("employer", 0.85, rf"{_JA_PLACE}(?:で働いて(?:い|る|ます)|に勤めて(?:い|る|ます)|に転職し(?:た|まし)|に就職し(?:た|まし))"),
    ("occupation", 0.85, rf"(?P<v>[一-鿿ァ-ヶー]{{0,8}}(?:{_JOBS_JA}))(?:です|をして(?:い|る)|をやって(?:い|る)|として働|になりました|になった)"),
    ("occupation", 0.85, r"(?:学校|中学|高校|大学|塾|教室)で(?P<v>[一-鿿ァ-ヶー]{1,8}を教えて)(?:い|ま|る|お)"),
    ("occupation", 0.85, r"(?P<v>[^、。\sはがを]{2,12})として(?:働いて|勤務して|勤めて)(?:い|ま|る|お)"),
    ("occupation", 0.85, r"(?P<v>[^、。\sはが]{2,12}?)(?:で|て)(?:生計を立て|食べていっ?て|暮らしを立て)"),
    ("occupation", 0.85, r"(?:仕事|職業)は(?P<v>[^、。\s]{2,20}?)(?:です|だ。|をして)"),
    ("age", 0.6, r"(?P<v>\d{1,3})歳(?:です|になりました|になった|だ)"),
    ("birthday", 0.9, r"誕生日は(?P<v>[\d一二三四五六七八九十]{1,3}月[\d一二三四五六七八九十]{1,3}日)"),
    ("relationship", 0.85, r"(?P<v>結婚|離婚|婚約)し(?:まし)?た"),
    ("favourite", 0.6, r"(?:一番|いちばん)好きな(?P<k>[^、。\s]{1,12})は(?P<v>[^、。\s]{1,20}?)(?:です|だ|$|。)"),
    ("allergy", 0.95, r"アレルギーは(?:何も|特に)?(?:ない|ありません)", "none", True),
    ("allergy", 0.95, rf"{_JA_THING}アレルギー(?:が|で|です|だ|持ち|なん)", "yes"),
    ("allergy", 0.95, rf"{_JA_THING}に(?:は)?アレルギーが(?:あり|ある)", "yes"),
    ("diet", 0.8, r"(?P<v>ベジタリアン|ヴィーガン|ビーガン|菜食主義)"),
    ("eats", 0.7, r"(?P<v>豚肉|牛肉|生魚|肉|魚|卵|乳製品)(?=(?:[はをもと、]|や)(?:(?:豚肉|牛肉|生魚|肉|魚|卵|乳製品)[はをもと、])*(?:もう)?(?:食べません|食べない|食べられな|食べなくな))", "no", True),
    ("eats", 0.7, r"(?P<v>豚肉|牛肉|生魚|肉|魚|卵|乳製品)(?=(?:[はをもと、]|や|だけは)(?:(?:豚肉|牛肉|生魚|肉|魚|卵|乳製品)[はをもと、])*(?:また)?(?:食べるように|食べ始め|食べることに))", "yes"),
    ("plan", 0.55, rf"{_JA_PLACE}(?:に|へ)(?:行く|旅行する)(?:計画|予定|つもり|ことに)", "planned"),
    ("plan", 0.55, rf"{_JA_PLACE}(?:に|へ)行って[^。]{{0,15}}(?:することに|する予定|するつもり)", "planned"),
    ("plan", 0.55, rf"{_JA_PLACE}(?:の[一-鿿]{{1,4}})?に(?:決めた|決めまし)", "planned"),
    ("plan", 0.55, rf"{_JA_PLACE}(?:旅行|行き)?(?:は|を)(?:あきらめ|諦め|取りやめ|やめに|見送|延期し|中止に|キャンセル)", "dropped", True),
    ("plan", 0.55, rf"{_JA_PLACE}(?:は|を)やめて[^。]{{1,20}}に(?:した|しまし|決め|変え)", "dropped", True),
    ("habit", 0.6, rf"{_JA_THING}(?:を|は|も)(?:もう)?(?:やめた|やめまし|やめて|卒業し|断ち)", "quit", True),
    ("habit", 0.6, rf"{_JA_THING}を(?:始めた|始めまし|はじめた|はじめまし|習い始め)", "does"),
    ("attitude", 0.6, rf"{_JA_THING}(?:が|は|も)(?:もう)?(?:本当に|とても|全然|あまり|大)?(?:嫌い|苦手|無理|好きじゃな|好きではな|好きでな|受けつけ|だめに)", "dislikes", True),
    ("attitude", 0.6, rf"{_JA_THING}(?:が|は|も)(?:本当に|とても|一番|いちばん|すごく)?(?:大)?好き(?!だった|でした|じゃ|では|でな|な)", "likes"),
)  # fmt: skip
_KO_PLACE = r"(?P<v>[가-힣A-Za-z]{2,10}?)"
_KO_THING = r"(?P<v>[가-힣A-Za-z0-9]+?(?: [가-힣A-Za-z0-9]+?){0,2}?)(?:을|를|은|는|이|가|도)?"
_KO_VERY = r"(?: ?(?:정말|진짜|너무|아주|제일|별로|이제|더 이상|도저히|많이|엄청|참))*"
_KOREAN = _rules(
    ("name", 0.95, r"(?:제|내) 이름은 (?P<v>[가-힣A-Za-z]{1,10}?)(?:이?에요|예요|입니다|이?야|이?라고)"),
    ("name", 0.95, rf"^(?:안녕하세요|반갑습니다|처음 뵙겠습니다|안녕)[,.!]? (?P<v>(?![가-힣]*(?:{_JOBS_KO}|살|사람))[가-힣A-Za-z]{{2,5}}?)(?:이에요|예요|입니다|이?라고 (?:해|합))"),
    ("name", 0.95, r"(?:저는|나는|난|전) (?P<v>[가-힣A-Za-z]{1,8}?)(?:이?라고) (?:해|합니다|불러)"),
    ("residence", 0.9, rf"(?:^|[\s,]){_KO_PLACE}(?:에|에서) (?:살고|살아|산다|삽니다)(?!았)"),
    ("residence", 0.9, r"(?:^|[\s,])(?P<v>(?:[가-힣]{2,4} )?[가-힣]{1,5}[시군구동읍면리도]) (?:원룸|아파트|빌라|오피스텔|주택|반지하|옥탑방)(?:인데|이에요|예요|입니다|이고|에 살|에서 살)"),
    ("residence", 0.9, rf"(?:^|[\s,]){_KO_PLACE}에 있는 (?:[가-힣]+ ){{0,2}}[가-힣]*(?:집|아파트|원룸|빌라|오피스텔|방)(?:을|를) (?:계약했|얻었|구했|샀)(?!다고|대)"),
    ("residence", 0.9, rf"(?:^|[\s,]){_KO_PLACE}(?:으로|로) (?:이사했|이사 왔|이사왔|이사 갔|이사갔|옮겼|이주했)"),
    ("employer", 0.85, rf"(?:^|[\s,]){_KO_PLACE}에서 (?:일하|일해|근무하|근무해)"),
    ("employer", 0.85, rf"(?:^|[\s,]){_KO_PLACE}에 (?:취직했|입사했|이직했)"),
    ("occupation", 0.85, rf"(?:^|\s)(?P<v>(?:[가-힣]+ )?[가-힣]{{0,6}}(?:{_JOBS_KO}))(?:이?에요|예요|입니다|이?야|로 일|가 됐|이 됐)"),
    ("occupation", 0.85, r"(?:^|\s)(?:저는|나는|난|전) (?P<v>(?:[가-힣]+ ){0,3}[가-힣]+(?:을|를) [가-힣]*(?:만드는|그리는|고치는|가르치는|파는|짓는|쓰는|키우는) (?:사람|일))(?:이에요|입니다|이야|을 해|을 하)"),
    ("occupation", 0.85, r"(?:^|\s)(?P<v>[가-힣]{1,8}(?:사|가|원|자|관|꾼))(?:으로|로) (?:일하|일해|근무하|근무해)"),
    ("occupation", 0.85, r"(?:^|\s)(?P<v>[가-힣]+(?:을|를) [가-힣]+(?:서|며)) (?:먹고살|먹고 살|생계를)"),
    ("occupation", 0.85, r"(?:제|내) 직업은 (?P<v>[가-힣A-Za-z ]{2,20}?)(?:이?에요|예요|입니다|이?야)"),
    ("age", 0.6, r"(?:저는|나는|난|전|올해) (?P<v>\d{1,3})살"),
    ("birthday", 0.9, r"생일은 (?P<v>\d{1,2}월 ?\d{1,2}일)"),
    ("relationship", 0.85, r"(?P<v>결혼|이혼|약혼)(?:을)? ?했"),
    ("favourite", 0.6, r"(?:제일|가장) 좋아하는 (?P<k>[가-힣 ]{1,12}?)(?:은|는) (?P<v>[가-힣A-Za-z0-9 ]{1,20}?)(?:이?에요|예요|입니다|이?야|[.]|$)"),
    ("allergy", 0.95, r"알레르기(?:는|가)? ?(?:전혀 |하나도 )?(?:없어|없습니다|없다)", "none", True),
    ("allergy", 0.95, r"(?:^|\s)(?P<v>[가-힣A-Za-z]{1,12}?)(?:에|에는)? ?알레르기(?:가|도)? ?(?:있|심|예요|이에요|입니다|야)", "yes"),
    ("diet", 0.8, r"(?P<v>채식주의자|비건|채식)(?:이?에요|예요|입니다|이?야|을 (?:해|하|시작))"),
    ("eats", 0.7, r"(?P<v>고기|생선|조개|달걀|유제품|해산물)(?=(?:[은는을를도과와,]|하고|이?랑)?(?: (?:고기|생선|조개|달걀|유제품|해산물)(?:[은는을를도과와,]|하고|이?랑)?)*(?: 이제| 여전히| 아예)* (?:안 먹|못 먹|먹지 않))", "no", True),
    ("eats", 0.7, r"(?P<v>고기|생선|조개|달걀|유제품|해산물)(?=(?:[은는을를도과와,]|하고|이?랑)?(?: (?:고기|생선|조개|달걀|유제품|해산물)(?:[은는을를도과와,]|하고|이?랑)?)*(?: 이제| 다시)* (?:먹기로|먹기 시작|먹어도))", "yes"),
    ("plan", 0.55, rf"(?:^|[\s,]){_KO_PLACE}(?:은|는|을|를|행은|행을| 여행은| 여행을) (?:[가-힣0-9]+(?:으로|로|에) )?(?:미루|미뤘|취소|포기|접었|접기로|안 가기로)", "dropped", True),
    ("plan", 0.55, rf"(?:^|[\s,]){_KO_PLACE}(?:에|으로|로) (?:[가-힣]+ )?(?:갈 거|갈 예정|갈 계획|가기로|다녀오기로|여행 가기로)", "planned"),
    ("plan", 0.55, rf"(?:^|[\s,]){_KO_PLACE}(?:으로|로) (?:정했|결정했|사기로)", "planned"),
    ("habit", 0.6, r"(?:^|\s)(?P<v>[가-힣A-Za-z]+?)(?:을|를|은|는)? ?(?:완전히 |아예 )?(?:끊었|끊기로|그만뒀|그만두었)", "quit", True),
    ("habit", 0.6, r"(?:^|\s)(?P<v>[가-힣A-Za-z]+?)(?:을|를) (?:시작했|배우기 시작)", "does"),
    ("attitude", 0.6, rf"(?:^|\s){_KO_THING}{_KO_VERY} (?:싫어|안 좋아|못 먹겠|못 참|좋아하지 않|질색)", "dislikes", True),
    ("attitude", 0.6, rf"(?:^|\s){_KO_THING}{_KO_VERY} (?:좋아해|좋아하(?!지 않)|좋아한|좋아합|사랑해)", "likes"),
)  # fmt: skip
_ZH_PLACE = r"(?P<v>[\u4e00-\u9fffA-Za-z]{2,8}?)"
_ZH_END = r"(?=了|[，。！；\s]|$)"
_ZH_MOD = r"(?:现在|最近|目前|已经|上周|上个月|去年|今年|就|刚|都|一直|还|也|昨天|前天)*"
_ZH_THING = r"(?P<v>[^，。！；？\s的]{1,15}?)"
_CHINESE = _rules(
    ("name", 0.95, rf"^(?:你好|您好|大家好|嗨)[，,！!。 ]*我是(?P<v>(?![\u4e00-\u9fff]*(?:{_JOBS_ZH}|人))[\u4e00-\u9fff]{{2,4}})(?=[，。！\s]|$)"),
    ("name", 0.95, r"我(?:的名字)?(?:叫|是叫)(?P<v>[\u4e00-\u9fffA-Za-z]{1,6})(?=[，。！\s]|$)"),
    ("residence", 0.9, rf"我们?{_ZH_MOD}(?:搬|移居|搬家)(?:到|去|来|回)(?:了)?{_ZH_PLACE}{_ZH_END}"),
    ("residence", 0.9, rf"我们?{_ZH_MOD}在{_ZH_PLACE}定居{_ZH_END}"),
    ("residence", 0.9, rf"我们?{_ZH_MOD}定居(?:在|到)?{_ZH_PLACE}{_ZH_END}"),
    ("residence", 0.9, rf"我们?{_ZH_MOD}在{_ZH_PLACE}(?:租|买)(?:了|下)(?:一?[套间个])?[^，。]{{0,6}}(?:房|公寓|房子|屋子)(?=了|[，。！；\s]|$)"),
    ("residence", 0.9, rf"我们?{_ZH_MOD}住在{_ZH_PLACE}{_ZH_END}"),
    ("employer", 0.85, rf"我{_ZH_MOD}在(?P<v>[\u4e00-\u9fffA-Za-z]{{2,10}}?)(?:工作|上班|任职)"),
    ("occupation", 0.85, rf"我(?:自己)?{_ZH_MOD}(?:是|当)(?:一?[名个位])?(?P<v>[\u4e00-\u9fff]{{0,6}}(?:{_JOBS_ZH}))"),
    ("occupation", 0.85, rf"我{_ZH_MOD}(?:靠|以)(?P<v>[^，。！；\s]{{2,10}}?)(?:为生|谋生|吃饭|养家)(?=[，。！；的\s]|$)"),
    ("occupation", 0.85, rf"我{_ZH_MOD}在(?:[\u4e00-\u9fff]{{0,6}})(?:小学|中学|高中|大学|学校|培训班)(?P<v>教[\u4e00-\u9fff]{{1,5}})(?=[，。！；\s]|$)"),
    ("occupation", 0.85, r"我的(?:工作|职业)是(?P<v>[\u4e00-\u9fff]{2,10})"),
    ("age", 0.6, r"我(?:今年|已经|刚满|满)?(?P<v>[\d一二三四五六七八九十]{1,3})岁"),
    ("birthday", 0.9, r"我的?生日是(?P<v>[\d一二三四五六七八九十]{1,3}月[\d一二三四五六七八九十]{1,3}[日号])"),
    ("relationship", 0.85, rf"我们?{_ZH_MOD}(?P<v>结婚|离婚|订婚)了"),
    ("favourite", 0.6, r"我最喜欢的(?P<k>[\u4e00-\u9fff]{1,8})是(?P<v>[^，。！；\s]{1,15})"),
    ("allergy", 0.95, r"我(?:对什么都|没有(?:任何)?|不)(?:不)?过敏(?:史|症)?|我没有(?:任何|什么)?过敏", "none", True),
    ("allergy", 0.95, r"(?:我|^)(?:一直|从小|好像)?对(?P<v>[^，。！；\s]{1,10}?)(?:严重)?过敏", "yes"),
    ("diet", 0.8, r"我(?:现在|一直|已经|开始)*(?:是)?(?P<v>吃素|素食|纯素)"),
    ("eats", 0.7, r"我(?:现在|已经|从来|再也)*不(?:再|能)?吃(?P<v>肉|鱼|鸡蛋|奶制品|猪肉|牛肉|海鲜)", "no", True),
    ("eats", 0.7, r"我(?:现在|已经|从来|再也)*不(?:再|能)?吃(?:肉|鱼|鸡蛋|奶制品|猪肉|牛肉|海鲜)(?:和|跟|、|或|，?也不吃)(?P<v>肉|鱼|鸡蛋|奶制品|猪肉|牛肉|海鲜)", "no", True),
    ("eats", 0.7, r"我(?:现在|又|已经)*(?:开始|可以|能)吃(?P<v>肉|鱼|鸡蛋|奶制品|猪肉|牛肉|海鲜)", "yes"),
    ("plan", 0.55, rf"我们?{_ZH_MOD}(?:打算|计划|决定|准备)(?:要)?去(?P<v>[\u4e00-\u9fffA-Za-z]{{2,8}}?)(?=玩|旅[行游]|看|了|[，。！；\s]|$)", "planned"),
    ("plan", 0.55, rf"我们?{_ZH_MOD}(?:想|打算|准备|决定)(?:做|办|开|买){_ZH_THING}(?=[，。！；\s]|$)", "planned"),
    ("plan", 0.55, r"(?:^|[，。、])(?P<v>[^，。！？\s我]{2,8}?)我们?(?:也|就|都|先|已经)*(?:不去|不办|不做|不开|不买|取消|推迟|停)了", "dropped", True),
    ("plan", 0.55, rf"我们?{_ZH_MOD}(?:取消了?|推迟了?|放弃了?|不)(?:去|买|办)(?P<v>[\u4e00-\u9fffA-Za-z]{{2,8}}?)(?:的(?:旅行|计划|行程))?了?(?=[，。！；\s]|$)", "dropped", True),
    ("habit", 0.6, rf"我(?:已经|终于|彻底|把)*(?:戒了|戒掉了?|不再喝|不再抽){_ZH_THING}(?=了|[，。！；\s]|$)", "quit", True),
    ("habit", 0.6, rf"我(?:最近|现在|已经|刚)*开始(?:学|练){_ZH_THING}(?=了|[，。！；\s]|$)", "does"),
    ("attitude", 0.6, rf"我(?:现在|已经|真的|再也|很|最|特别|一点都|一点也|也|还是)*(?:讨厌|受不了|恨|不(?:太|怎么|再|大)?(?:喜欢|爱)|吃不了){_ZH_THING}(?=的?(?:[，。！；\s了]|$))", "dislikes", True),
    ("attitude", 0.6, rf"我(?:现在|一直|真的|很|最|特别|非常|超|超级|也|还是|都|从小)*(?:喜欢|爱){_ZH_THING}(?=的?(?:[，。！；\s]|$))", "likes"),
)  # fmt: skip
_RULES = {"en": _ENGLISH, "ja": _JAPANESE, "ko": _KOREAN, "zh": _CHINESE}

_PRONOUN_WORDS = """it that this them these those you him her me us there here one what how when where everything
something anything what's your his their to あれ これ それ ここ そこ あそこ 家 そっち こちら あなた 거기 여기 저기 이거 그거 저거
그것 집 당신 너 내일 오늘 어제 때 것 她 他 它 你 你们 他们 这个 那个 这里 那里 这 那"""
_PRONOUNS = frozenset(_PRONOUN_WORDS.split())
_LEAD = re.compile(
    r"^(?:(?:to|the|a|an|my|our|any|some|all|eating|drinking) |(?:이제|이젠|정말|사실|요즘|저는|나는|난|전|저도|나도|아직|그래도|그래서|그리고|근데|하지만|그런데) "
    r"|昨日|今日|先週|先月|去年|昨年|今年|来月|最近|もう|今|家族で|夫婦で|吃|喝|去(?!年))+(?=\S)",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:\s+(?:anymore|any more|now|a lot|so much|very much|more than \w+|completely|entirely|too|again|at all))+$|(?:的|了|を|は|が)$",
    re.IGNORECASE,
)
_NOT_EATEN = {
    "vegetarian": "meat pork beef fish seafood", "vegan": "meat pork beef fish seafood dairy eggs",
    "pescatarian": "meat pork beef",
    "ベジタリアン": "肉 豚肉 牛肉 魚 生魚", "菜食主義": "肉 豚肉 牛肉 魚 生魚", "ヴィーガン": "肉 豚肉 牛肉 魚 生魚 卵 乳製品",
    "ビーガン": "肉 豚肉 牛肉 魚 生魚 卵 乳製品",
    "채식주의자": "고기 생선 조개 해산물", "채식": "고기 생선 조개 해산물", "비건": "고기 생선 조개 해산물 달걀 유제품",
    "素": "肉 猪肉 牛肉 鱼 海鲜", "素食": "肉 猪肉 牛肉 鱼 海鲜", "纯素": "肉 猪肉 牛肉 鱼 海鲜 鸡蛋 奶制品",
}  # fmt: skip
_CLAUSES = re.compile(r"ので|ため|[、,，]")
"""A plan belongs to who speaks of it, whatever the reason given before it is about."""
_KOREAN_TOPIC = re.compile("[가-힣](?:은|는|이|가)$")
_DENIED_OR_PAST = re.compile(
    r"\bused to\b|\b(?:never|not|n't|almost|nearly) (?:\w+ )?(?:moved|relocated|live|living)|住んでいまし|住んでいた|住んでた|以前は"
    r"|살았|살지 않|예전에는|以前住|曾经住|不住在|没有?搬|搬到.{0,8}之前"
)
_DATED_EVENT = (
    re.compile(r"\b[Mm]y (?:next )?(?P<v>[a-z][a-z ]{2,25}?)(?:'s| is| was moved| got moved| has been moved) (?:now )?(?:on|to|in|at|set for|scheduled for|tomorrow|next)\b"),
    re.compile(r"(?P<v>試験|面接|手術|出産|結婚式|発表会?|大会|検査|引っ越し|予定日|締め切り|旅行|合宿|卒業式|入学式)は"),
    re.compile(r"(?P<v>시험|면접|수술|결혼식|발표|대회|검사|이사|마감|여행|졸업식|입학식|출시)(?:은|는|이|가) "),
    re.compile(r"(?P<v>考试|面试|手术|婚礼|比赛|检查|搬家|预产期|截止日期|旅行|毕业典礼|开学|演出)(?:是|在|改到|改成|定在|推迟到)"),
)  # fmt: skip


def find_slot(text: str, lang: str) -> Slot | None:
    """Return the replaceable attribute a statement sets, in whatever language its rules are, or None."""
    return next(_found(text, lang), None)


def find_slots(text: str, lang: str) -> tuple[Slot, ...]:
    """Return every attribute a statement sets, also those that follow from one: a vegetarian eats no fish."""
    found = list(_found(text, lang))
    implied = [
        Slot(f"eats|{food}", "no", slot.importance, negated=True)
        for slot in found
        if slot.attribute == "diet"
        for food in _NOT_EATEN.get(slot.value, "").split()
    ]
    return tuple({slot.attribute: slot for slot in (*implied, *found)}.values())


def _found(text: str, lang: str) -> Iterator[Slot]:
    for rule in _RULES.get(lang, _ENGLISH):
        for match in rule.pattern.finditer(text):
            before = text[: _value_start(match)]
            if rule.attribute == "plan":
                before = _CLAUSES.split(before)[-1]
            slot = _slot(rule, match) if is_about_speaker(before, lang) else None
            if slot is not None and not (slot.attribute == "residence" and _DENIED_OR_PAST.search(text)):
                yield slot


def _value_start(match: re.Match[str]) -> int:
    return match.start("v") if "v" in match.re.groupindex else match.start()


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


def _slot(rule: _Rule, match: re.Match[str]) -> Slot | None:
    groups = match.groupdict()
    value = normalize_value(groups.get("v") or "")
    if rule.value == "none":
        return Slot(f"{rule.attribute}|none", "none", rule.importance, negated=True)
    if not value or value in _PRONOUNS or value.split()[0] in _PRONOUNS:
        return None
    words = value.split()
    is_relative = rule.attribute == "occupation" and words[-1] in {"사람", "일"}
    if len(words) > MAX_VALUE_WORDS or (not is_relative and any(_KOREAN_TOPIC.search(word) for word in words[:-1])):
        return None  # a clause, or somebody else's
    if rule.value is not None:
        return Slot(f"{rule.attribute}|{value}", rule.value, rule.importance, negated=rule.negated)
    if groups.get("k"):
        return Slot(f"{rule.attribute}|{normalize_value(groups['k'])}", value, rule.importance)
    return Slot(rule.attribute, value, rule.importance)


def normalize_value(value: str) -> str:
    """Return a value as compared: forms and case folded, articles and filler off, bounded."""
    folded = unicodedata.normalize("NFKC", value).casefold().replace("’", "'").replace("|", " ").strip(" .,'\"")
    bare = _TAIL.sub("", _LEAD.sub("", " ".join(folded.split())))
    return bare[:MAX_VALUE_CHARACTERS].strip()
