"""Which sentences of a turn state something about their speaker's life. Rules over one sentence at a time. Pure.

What is asked, imagined, quoted, heard said, ordered or only polite states nothing.
"""

import re
from dataclasses import dataclass

from memoryos_pipeline.domain.language import HANGUL, HIRAGANA, KATAKANA, split_sentences

MAX_SENTENCE_CHARACTERS = 400

KOREAN_N = "".join(chr(0xAC00 + 28 * n + 4) for n in range(399))
"""Syllables that end in ㄴ: before 가요 they ask (좋은가요), where others go (회사에 가요)."""
_QUESTION = re.compile(
    r"[?？]\s*[」』\"”)]*$"
    r"|(?:でしょうか|ですか|ますか|ませんか|だろうか|かな[ぁあー]*|ありますか|のか)[。.]*$"
    rf"|(?:나요|까요|을까|ㄹ까|[{KOREAN_N}]가요|니|냐|은지요)[.]*$"
    r"|(?:吗|么|是不是|对不对)[。.]*$|(?:什么|怎|谁|哪|几|多|要不要|会不会|该不该|你|您)[^。]*呢[。.]*$"
    r"|^(?:what|when|where|who|why|how|which|whose|can you|could you|do you|did you|does|are you|is it|should i)\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:imagine|suppose|supposing|pretend(?:ing)?|hypothetically|let's say|what if|as if|i wish|if only"
    r"|would it|would be|role-?play|once upon a time|in (?:my|the|this) (?:story|novel|dream|game|song|poem)|lyrics?)\b"
    r"|\bif (?:i|we|my|our)\b|\b(?:i|we)(?:'d| would) (?:be|have|live|move|become)\b|\bsays? the character\b"
    r"|もし(?!かし)|もしも|仮に|としたら|だとすれば|想像して|(?:物語|小説|歌詞|夢)の中|ごっこ|だったらなあ|たらいいのに"
    r"|만약|만일|가정하|상상해|(?:다|는)다면|(?:소설|이야기|노래|꿈) ?(?:속|에서)|가사에"
    r"|如果|假如|要是|假设|假装|想象|万一|(?:小说|故事|歌词|梦)(?:里|中)|歌里唱",
    re.IGNORECASE,
)
_HEARSAY = re.compile(
    r"\b(?:thinks?|thought|believes?|assumes?|claims?|says?|said|joked?|jokes|imagines?|told \w+)\b(?: that)? "
    r"(?:i|we|i'm|we're|i've|i'd)\b(?<!i think i)(?<!i thought i)"
    r"|(?:は|が)[^。]{0,20}(?:私|僕|俺|わたし|うち)[^。]{0,20}と(?:思っ|考え|言っ|いっ|信じ)て"
    r"|(?:은|는|이|가) [^.]{0,20}(?:내가|제가|나를|저를|날|나보고|저보고)[^.]{0,20}(?:다고|라고) ?(?:생각|말|믿|해|하)"
    r"|(?:同事|朋友|他们?|她们?|别人|大家|人家|老板|邻居)[^。，]{0,4}(?:觉得|认为|以为|说|猜)我",
    re.IGNORECASE,
)
_AUTHORITY = re.compile(
    r"\b(?:tests?|results?|doctors?|scan|lab|specialist|allergist|physician|dentist)\b \w+", re.IGNORECASE
)
"""Who examines somebody knows it better than they do."""
_OWN_THOUGHT = re.compile(r"\bi (?:think|thought|said|believe|told \w+)\b", re.IGNORECASE)
_ORDER = re.compile(
    r"^(?:please|tell me|help me|give me|show me|write|explain|suggest|recommend|remind me|let's|imagine)\b"
    r"|(?:教えて|お願い|ください|してくれ|頼む)(?:ます|ね|ください)?[。！!]*$"
    r"|(?:줘|주세요|주라|해봐|부탁해요?|부탁드려요?|알려줄래)[.!]*$|^(?:请|帮我|告诉我|给我|麻烦你?)",
    re.IGNORECASE,
)
_PLANTED = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:rules?|instructions?|prompts?|guidelines?)\b"
    r"|\b(?:delete|erase|wipe) (?:all|every)\b.{0,20}\bmemor|\b(?:system prompt|output action|action delete)\b"
    r"|\bfrom now on\b.{0,30}\b(?:start|begin|end|answer|reply|respond|say|always)\b"
    r"|\byou (?:must|are now) (?:always|a|an)\b"
    r"|(?:指示|ルール|規則|命令)[^。]{0,8}(?:無視|忘れ)|記憶[^。]{0,8}(?:削除|消)|これからは?[^。]{0,12}(?:答え|返事|回答)"
    r"|(?:지시|규칙|명령)[^.]{0,8}(?:무시|잊)|기억[^.]{0,8}(?:삭제|지워)|앞으로[^.]{0,12}(?:답|대답)"
    r"|(?:忽略|无视|忘记)[^。]{0,10}(?:规则|指令|指示|提示)|删除[^。]{0,10}(?:记忆|所有)|从现在(?:开始|起)[^。]{0,12}(?:回答|回复)",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:hi|hello|hey|thanks?|thank you|ok(?:ay)?|sure|great|cool|nice|wow|lol|haha+|good (?:morning|night|evening)|bye"
    r"|see you|yes|yeah|no|yep|right|exactly|ping|got it|sounds good|you're (?:right|welcome)|talk (?:soon|later)"
    r"|こんにちは|こんばんは|おはよう|はじめまして|ありがとう|どうも|はい|うん|ええ|いいえ|いえ|なるほど|了解|おやすみ|わかりました"
    r"|안녕|고마워|감사|네|응|아니요?|아뇨|그래|맞아|알겠|잘 ?자|좋아요?|ㅋ+|ㅎ+"
    r"|你好|您好|谢谢|多谢|好的?|嗯+|哈+|对|是的?|没错|晚安|早安|再见|拜拜|知道了|明白了?)"
    r"(?:[\s,.!~、。，！～…]|so much|very much|a lot|again|there|everyone|ございます|ました|ます|です|ね|よ"
    r"|하세요|합니다|해요|요|습니다|啊|呀|了|你|您)*",
    re.IGNORECASE,
)
_REPLY = re.compile(
    r"(?:(?:ok(?:ay)?|yes|sure|thanks|then|well)[,.!]? )*(?:i'll|i will|i'm going to|we'll) (?:try|do|use|give)"
    r" (?:that|it|this|them)(?: a (?:try|go))?(?: (?:on \w+|tomorrow|tonight|today|then|next time|this weekend))?"
    r"|(?:i have|i've got) (?:\w+ ){0,3}(?:news|something to (?:tell|ask) you)(?: today| tonight)?"
    r"|(?:それなら|では|じゃあ|明日|今夜|今日|今度|早速|さっそく|ぜひ|から|、)*[一-鿿ぁ-ん]{1,5}てみます(?:ね)?"
    r"|(?:今日は|実は|ひとつ|一つ|、)*(?:大事な|少し|ちょっと|大きな|いい|嬉しい)*(?:報告|話|お知らせ|相談)が(?:あります|あるんです)"
    r"|(?:그럼|네|내일부터|내일|오늘|저도|한번|바로|꼭|이제|[, ])*(?:해|써|만들어|먹어|시도해|따라 ?해) ?볼게요?"
    r"|(?:오늘은|사실|좀|잠깐|[, ])*(?:[가-힣]+ )?(?:얘기|이야기|말씀)(?:를|을)? ?(?:좀 )?(?:할게요?|드릴게요)"
    r"|(?:好的?|那|我|就|明天|今晚|回头|去|来|也|[，, ])*(?:试试看?|试一下)吧?"
    r"|(?:今天|我|还|[，, ])*有[件个](?:好|坏|大)?(?:事|消息)(?:要?(?:告诉你|[跟和]你说|说))?",
    re.IGNORECASE,
)
"""To try what was advised, or that something will be told: it answers the other, and says nothing of a life."""
_QUOTED = re.compile(r"「[^」]*」|『[^』]*』|“[^”]*”|\"[^\"]*\"|《[^》]*》|‘[^’]{8,}’")
_LONG_SPLIT = re.compile(r"(?<=[,;、，；\s])")
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i've|i'll|i'd|we|we're|we've|we'll|my|our|me|us|mine|ours|myself)\b"
    r"|私|わたし|僕|ぼく|俺|うち[のはが]|自分|나[는도의를]|내가|내 |저[는도의를]|제가|제 |우리|我|咱",
    re.IGNORECASE,
)
_OWN_TOPICS_JA = (
    r"(?:私|わたし|僕|ぼく|俺|うち|自分|私たち|僕たち|今|実|本当|最近|名前|仕事|職業|本業|本職|趣味|誕生日|自宅|住まい|我が家|家|勤め先|勤務先|職場|会社|会社に"
    r"|通勤|通勤手段|出勤|朝|毎朝|朝食に|朝食|朝ごはんに|朝の飲み物|飲み物|いつもの飲み物|一日|昔|以前|前|このごろ|近ごろ|年末|連休|週末|普段|平日|(?:夏|冬|春|秋|次|今度|年末)の(?:旅行|旅|休み|休暇)|旅行|休み|休暇|(?:今の|新しい)(?:家|職場|会社|仕事)|普段の足|(?:毎週)?[月火水木金土日]曜日?(?:の(?:夜|朝))?|仕事に|(?:新しい|今の|前の)?車|愛車|(?:今|一番|いちばん|最も)*(?:好きな|気に入って(?:い)?る)[一-鿿ァ-ヶー]{1,6}(?:の一位)?|(?:私|僕|俺)の中で[一-鿿ァ-ヶー]{1,4}の一位"
    r"|(?:お気に入り|推し)の[一-鿿ァ-ヶー]{1,6}|映画で|本で|音楽で|検査|膝|腰|頭|体|足|肩|目|胃|お金|時間|日課|医者|先生|体調|(?:犬|猫|子犬|子猫|うさぎ|ペット|インコ)(?:の名前)?)"
)
"""What a clause of theirs may be about: themselves, and what everybody has one of."""
_OTHER_TOPIC_JA = re.compile(
    rf"(?:^|[、。\s])(?!(?:[^、。\s]{{1,4}}から)?(?:(?:私|僕|俺|わたし|うち|我が家|自分)の)?{_OWN_TOPICS_JA}(?:は|が|も))"
    r"[^、。\s]{0,11}?(?:[^、。\s月日年朝夜昼週末でにとら]は|[^、。\s月日年朝夜昼週末]が)(?!やめ|辞め|手放|売っ|売れ|卒業|だったけど|もう|とうとう|動かなく|下取り)"
)
_OWN_TOPICS_KO = (
    r"(?:지금|이제|더|오늘|어제|내일|요즘|사실|평소|주말|원래|예전|올해|당분간|직업|일|이름|나이|생일|취미"
    r"|집|자택|직장|회사|아침|아침 음료|음료|출근|출퇴근|통근|통근 수단|출근 수단|차|영화|최애 영화"
    r"|좋아하|마시|배우|다니|만나|사귀|먹|하|타|무릎|허리|몸|머리|돈|시간|의사|검사 결과"
    r"|강아지|고양이|토끼|반려견|강아지 이름|고양이 이름"
    r"|이름|수단|애마|본업|전업|여행|연휴|휴가|방학|저녁|밤|[월화수목금토일]요일"
    r"|작|좋|많|넓|좁|같|높|낮|젊|짧|깊|맑|밝|있|없|드|가|오|보|사|쓰|듣|읽|만드|아끼|지키|걷|넘)"
)
"""Topics of their own, and verbs whose form before a noun looks like a topic (좋아하는)."""
_OTHER_TOPIC_KO = re.compile(
    r"(?:^|(?<!좋아하는)(?<!최애)(?<!인생)[,.\s])"
    rf"(?!(?:제 |내 |우리 |저희 )?{_OWN_TOPICS_KO}(?:은|는|이|가|에는|엔)?(?:\s|$))"
    r"(?:제 |내 |우리 |저희 )?[가-힣]{1,8}(?:(?<![서에로])[은는]|(?<!다)[이가]|께서|한테는) "
    r"(?!아니라|그만두|관두|접고|포기|정리|밀려나|됐고|팔렸|결국|이제|안 타|처분|끊고|팔고)"
)
_SPEAKER_AS_TOPIC = re.compile(
    r"(?:私|わたし|僕|ぼく|俺|うち|自分)(?:は|も|が)|(?:^|[\s,])(?:나는|난|저는|전|내가|제가|우리는|저희는|저도|나도) "
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a turn; `plain` is it without what stands in quotation marks."""

    text: str
    plain: str


def bounded_sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text, each at most 400 characters; longer ones are cut at a comma or space."""
    pieces = [piece for sentence in split_sentences(text) for piece in _bounded(sentence)]
    return [Sentence(piece, _QUOTED.sub(" ", piece)) for piece in pieces]


def _bounded(sentence: str) -> list[str]:
    if len(sentence) <= MAX_SENTENCE_CHARACTERS:
        return [sentence]
    pieces, current = list[str](), ""
    for part in _LONG_SPLIT.split(sentence):
        if current and len(current) + len(part) > MAX_SENTENCE_CHARACTERS:
            pieces.append(current.strip())
            current = ""
        current += part
        while len(current) > MAX_SENTENCE_CHARACTERS:
            pieces.append(current[:MAX_SENTENCE_CHARACTERS].strip())
            current = current[MAX_SENTENCE_CHARACTERS:]
    return [piece for piece in (*pieces, current.strip()) if piece]


def is_question(sentence: Sentence) -> bool:
    """Tell whether a sentence asks."""
    return _QUESTION.search(sentence.text) is not None


def is_polite_phrase(sentence: Sentence) -> bool:
    """Tell whether a sentence is nothing but a greeting, thanks or assent."""
    return _POLITE.fullmatch(sentence.text.strip()) is not None


def is_reply(sentence: Sentence) -> bool:
    """Tell whether a sentence only takes up what the other said, or announces what will be said."""
    return _REPLY.fullmatch(sentence.text.strip().replace("’", "'").rstrip(".!。！~ ")) is not None


def is_planted(text: str) -> bool:
    """Tell whether a text gives orders to whoever keeps or answers from memory."""
    return _PLANTED.search(text) is not None


def states_something(sentence: Sentence) -> bool:
    """Tell whether a sentence asserts something in the words of its own speaker."""
    if is_question(sentence) or is_polite_phrase(sentence) or is_reply(sentence) or is_planted(sentence.text):
        return False
    if _SUPPOSED.search(sentence.plain) or _ORDER.search(sentence.plain.strip()):
        return False
    heard = None if _AUTHORITY.search(sentence.plain) else _HEARSAY.search(sentence.plain)
    return (heard is None or _OWN_THOUGHT.search(sentence.plain) is not None) and _has_words(sentence.plain)


def _has_words(text: str) -> bool:
    wide = len(re.findall(f"[\u3400-\u9fff{HIRAGANA}{KATAKANA}{HANGUL}]", text))
    return wide >= 4 or len(text.split()) >= 3


def names_first_person(sentence: Sentence) -> bool:
    """Tell whether a sentence says I or we."""
    return _FIRST_PERSON.search(sentence.plain) is not None


def is_about_speaker(text: str, lang: str) -> bool:
    """Tell whether what follows this beginning of a Japanese or Korean clause is about who speaks.

    These languages leave the subject out; another topic before it makes it someone else's.
    """
    if lang == "ja":
        return _OTHER_TOPIC_JA.search(text) is None or _SPEAKER_AS_TOPIC.search(text) is not None
    if lang == "ko":
        return _OTHER_TOPIC_KO.search(text) is None or _SPEAKER_AS_TOPIC.search(text) is not None
    return True


def leaves_speaker_out(text: str, lang: str) -> bool:
    """Tell whether a Japanese or Korean sentence has no topic of its own, so that it speaks of who says it."""
    if lang == "ja":
        return _OTHER_TOPIC_JA.search(text.replace("が", "、")) is None
    return lang == "ko" and (_OTHER_TOPIC_KO.search(text) is None or _SPEAKER_AS_TOPIC.search(text) is not None)
