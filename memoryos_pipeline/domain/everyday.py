"""Sentences that have nothing to do with one another, in each language.

What their vectors share says nothing about what a text is about: sentence encoders put any two texts of a
language close together (cosines of 0.8 to 0.95 between unrelated ones). Without that common part the published
thresholds mean what they meant where they were published.
"""

EVERYDAY: dict[str, tuple[str, ...]] = {
    "en": (
        "The train to the coast leaves at seven in the morning.",
        "My sister is allergic to peanuts.",
        "The printer in the office is broken again.",
        "We painted the kitchen yellow last weekend.",
        "He finished the marathon in under four hours.",
        "The bank raised its interest rates.",
        "I am learning to play the violin.",
        "The cat slept on the keyboard all afternoon.",
        "Her new phone has a cracked screen.",
        "They are planning a wedding in October.",
        "The soup needs more salt.",
        "Our team lost the final by one point.",
    ),
    "ja": (
        "海へ行く電車は朝七時に出ます。",
        "妹はピーナッツアレルギーです。",
        "会社のプリンターがまた壊れた。",
        "先週末に台所を黄色に塗った。",
        "彼はマラソンを四時間以内で完走した。",
        "銀行が金利を上げた。",
        "バイオリンを習っています。",
        "猫が午後ずっとキーボードの上で寝ていた。",
        "新しい携帯の画面が割れた。",
        "二人は十月に結婚する予定です。",
        "スープにもう少し塩がいる。",
        "私たちのチームは決勝で一点差で負けた。",
    ),
    "ko": (
        "해안으로 가는 기차는 아침 일곱 시에 떠난다.",
        "여동생은 땅콩 알레르기가 있어.",
        "사무실 프린터가 또 고장 났어.",
        "지난 주말에 부엌을 노란색으로 칠했어.",
        "그는 마라톤을 네 시간 안에 완주했다.",
        "은행이 금리를 올렸다.",
        "나는 바이올린을 배우고 있어.",
        "고양이가 오후 내내 키보드 위에서 잤어.",
        "새 휴대폰 화면이 깨졌어.",
        "그들은 시월에 결혼할 계획이다.",
        "국에 소금이 더 필요해.",
        "우리 팀이 결승에서 한 점 차로 졌어.",
    ),
    "zh": (
        "去海边的火车早上七点出发。",
        "我妹妹对花生过敏。",
        "办公室的打印机又坏了。",
        "上周末我们把厨房刷成了黄色。",
        "他用不到四个小时跑完了马拉松。",
        "银行提高了利率。",
        "我在学拉小提琴。",
        "猫整个下午都睡在键盘上。",
        "她的新手机屏幕裂了。",
        "他们打算十月结婚。",
        "汤还需要加点盐。",
        "我们队在决赛中以一分之差输了。",
    ),
}


def everyday_sentences(lang: str) -> tuple[str, ...]:
    """Return the sentences of a language; of a language without any, those of all."""
    every = tuple(sentence for sentences in EVERYDAY.values() for sentence in sentences)
    return EVERYDAY.get(lang, every)
