"""How English speakers tell of their lives in chat, beside the plain phrases: looser rules, tried after those. Pure."""
# ruff: noqa: E501 - tables with one rule a line

from memoryos_pipeline.domain.statements_en import (
    _FAVOURITE,
    _GAP,
    _I,
    _KIND,
    _NAME,
    _PET_NAME,
    _PETS,
    _PLACE,
    _THING,
    _TITLE,
)
from memoryos_pipeline.domain.statements_rules import rules

_AM = r"\b(?:I|[Ww]e)(?:['’](?:m|re|ve been)| am| are| have been)"
_LATELY = r"(?: now| still| currently| actually| already| also| just| always| really)*"
_WORKER = (
    r"(?P<v>(?!(?:[\w-]+ )?(?:eater|lover|beginner|member|mother|father|brother|sister|daughter|smoker|runner|swimmer|believer|parent|sucker|stranger|owner|winner"
    r"|loser|fighter|foreigner|newcomer|follower|reader|drinker|riser|customer|player|number|matter|giant|participant|infant|want|vegetarian|flower)\b)"
    r"(?:[a-z-]+ )?[a-z-]*(?:[a-z]{2}er|[ts]or|(?<!\bl)(?<!\bm)[a-z]ist|cian|rian|smith|wright|wife|medic|keeper|worker|chef|nurse|eer|tant|geant|ant|guard|clerk|guide|driver|coach|aide|vet|cook|judge))\b"
)
_HOME = r"(?:room|house|home|flat|apartment|place|studio|condo|loft|cottage|bungalow)"
_JOIN = r"(?:(?:(?:moved|went|switched|jumped|gone|transferred)(?: over| across)? to|(?:joined|joining)|(?:now |I'm |I am |am )*(?:at|with|working (?:at|for)|work (?:at|for)))(?: a job at)?)"
_TITLE_BEFORE = r"(?:^|[,;] ?|\b[Nn]ow )(?P<v>[A-Z][^,.;:!?]{1,40}?)"
_CLASS = r"(?:lessons?|class(?:es)?|courses?|practice|training|sessions?)"
_WHEN = r"(?:every|each|twice|once|three times|most|on (?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun|week)|at weekends|in the (?:mornings?|evenings?)|daily|weekly|before work|after work|for (?:a few|some|two|three|several|a couple)|since|these days|and I)"

FIRST = rules(
    ("employer", 0.85, rf"{_I}(?:finally |just |have |'ve )*(?:resigned from|quit|left|was let go by|walked out of|jumped ship from|moved on from|said goodbye to) {_NAME}(?:,| and| to| for| then)* (?:I(?:'m| am) )?{_JOIN} {_PLACE}"),
    ("employer", 0.85, rf"{_I}(?:just |finally )?(?:jumped ship|switched|moved|transferred|went) from (?!(?:[A-Z]\w+) to (?:[A-Z]\w+)[.]?$)(?={_NAME.replace('P<v>', ':')} to [A-Z][\w'’&-]* [A-Z&]){_NAME} to {_PLACE}"),
    ("employer", 0.85, rf"{_I}(?:just |finally )?jumped ship from {_NAME} to {_PLACE}"),
    ("employer", 0.85, rf"\bI(?:'m|’m| am)(?: an?| on| in| part of)(?: the)? [\w -]{{2,30}}? (?:over |out |down )?at {_PLACE}"),
    ("employer", 0.85, rf"\bI(?:'m|’m| am) part of {_PLACE}"),
    ("relationship", 0.85, r"\bI(?:['’](?:ve|m)| have| am)?(?: just| recently| now| been)* (?:(?:started|begun|been) )?(?:dating|seeing|going out with) (?:some|a (?!lot|film|movie|doctor|therapist|play)|again\b|this (?:guy|girl|man|woman))|\bI(?:'m|’m| am) dating again", "partner"),
    ("relationship", 0.85, r"\b[Mm]y (?:girlfriend|boyfriend|partner|fianc[eé]e?) and I (?:have been|are|met|live|moved|share|celebrate)|\b(?:I(?:['’]ve| have)(?: got| found)?|I have|I met) an? (?:new |lovely |wonderful )?(?:girlfriend|boyfriend|partner)\b", "partner"),
    ("relationship", 0.85, r"\b[Mm]y (?:relationship|marriage)(?: is|['’]s) (?:over|finished|done)|\b(?:I(?:'m|’m| am)|[Ww]e(?:'re| are)) (?:single|on (?:my|our) own)(?: again| now)?\b|\bI['’]ve been (?:on my own|alone|by myself) since|\b[Ww]e(?:['’]ve| have)?(?: just| finally)? (?:separated|parted ways|called it off|split)\b", "single"),
    ("diet", 0.8, r"\b(?:given up|gave up|dropped|quit|stopped|done with|abandoned|left)(?: being| the| my| a)* (?:vegetarian|vegan|pescatarian|plant-based)\b", "none", True),
    ("diet", 0.8, r"\bI(?:['’](?:ve|m)| have| am)?(?: now| always| strictly| still)* (?:stick|sticking|stuck|keep|kept|follow|following|eat|eating|on|gone|went|going|switched|turned)(?: to| with| over to)?(?: an?| the)?(?: strictly| fully| completely)? (?P<v>vegetarian|vegan|pescatarian)\b"),
    ("eats", 0.7, r"\bI(?:'m|’m| am)? (?:[\w']+ ){0,3}?(?:eat|have|love|enjoy|need|crave|live on)(?: \w+){0,2}? (?P<v>meat|fish)\b(?! sub)(?=[^.]*\b(?:now|again|every|each|daily|most days|all the time|nearly|twice|once|any)|[.!]?$)", "yes"),
    ("eats", 0.7, r"\bI(?:'m|’m| am) (?:an?|such an?|quite an?)(?: \w+)? (?P<v>meat|fish)[ -](?:eater|lover)", "yes"),
    ("eats", 0.7, r"\b(?:can['’]t|couldn['’]t|cannot) (?:live|do|be) without (?P<v>meat|fish)\b", "yes"),
    ("eats", 0.7, r"\bI(?:['’]ve| have)? (?:cut out|sworn off|given up|gave up|stopped having|quit having) (?P<v>meat|fish)\b|\bI['’]m off (?P<w>meat|fish)\b", "no", True),
)  # fmt: skip
"""Tried before the plain rules: where those would take one thing for another."""

LAST = rules(
    ("employer", 0.85, rf"\b{_PLACE} (?:hired|poached|recruited|took) me\b|\b(?P<w>{_NAME}) (?:made|offered|gave) me (?:an?|the)(?: [\w-]+){{0,2}} (?:offer|job|role|contract|deal)\b"),
    ("occupation", 0.85, r"(?:^|[.,] )(?:[Bb]een |[Ss]till |[Nn]ow )?(?:[Ww]orking|[Ww]orked|[Ww]ork) as an? (?P<v>[a-z-]+(?: [a-z-]+)?)(?=[,.!]|$| (?:since|for|at|in|now|these|full|part))"),
    ("plan", 0.55, rf"\b{_PLACE} it is(?: then)?(?= for| this| next|[.!,])", "planned"),
    ("pet", 0.6, rf"\b{_PETS}\b[^.;]*\b(?:at (?:ours|mine|home|our place|my place)|in (?:the|our) (?:house|family|home))\b[^.;]*?(?:,|called|named|:) ?{_PET_NAME}(?=[.!,]|$)", "has"),
    ("habit", 0.6, r"(?:^|[,;] )(?P<v>[A-Za-z][\w ]{2,20}?) keeps me (?:sane|going|fit|calm|grounded|happy|in shape)", "does"),
    ("eats", 0.7, r"\bI(?:['’]ll|['’]d|['’]m)? (?:\w+ ){0,2}eat(?:ing)? (?:any|all|every)(?:thing with| kinds? of| sorts? of| types? of)? (?P<v>meat|fish)", "yes"),
    ("residence", 0.9, rf"{_I}{_GAP}(?:rent|renting|own|owned|have|got|bought|share|keep|took|taken)(?: got)? (?:an?|our|my|the)(?: (?!holiday|second|summer|vacation|weekend|beach)[\w-]+){{0,2}} {_HOME} (?:over |out |down |up )?in {_PLACE}(?! (?:too|as well))"),
    ("residence", 0.9, rf"\bI(?:'m|’m| am) an? {_PLACE} (?:resident|local|dweller)\b"),
    ("residence", 0.9, rf"{_I}{_GAP}(?:made|make|making|call|calling) {_PLACE} (?:(?:my|our)(?: new)? )?home\b|\band (?:made|call) (?P<w>{_NAME}) (?:(?:my|our)(?: new)? )?home"),
    ("residence", 0.9, rf"\b{_PLACE}(?:['’]s| is| has become| became)(?: now| always| just)?(?: where (?:I|we)(?: now)? (?:live|call|are (?:living|based))|(?: my| our)(?: new)? home\b| home (?:now|for (?:me|us)|these days))"),
    ("residence", 0.9, rf"{_I}(?:have |'ve )?(?:ended up (?:moving to|living in|settling in|in)|moved (?:out |over |away )?to|packed up for) {_PLACE}"),
    ("residence", 0.9, rf"(?:{_AM}|\band)(?: living)?(?: over| out| back| down| up| now| here)* in {_PLACE}(?=,? (?:as of|since|from (?:\w+day|now)|now\b|nowadays|these days|for (?:good|years|ages|a while)|have been|and have))"),
    ("residence", 0.9, rf"\b(?:I (?:meant|mean)|make that|it's|no,?) {_PLACE},? (?:that's|is) where (?:I|we) live|\bI live in (?P<w>{_NAME})(?: now)?[.!]?$"),
    ("employer", 0.85, rf"{_AM}{_LATELY} (?:with|at) {_PLACE}(?=,? (?:since|from (?:now|\w+day)|now\b|these days|for (?:years|ages|a while)|been|and)|[.!]?$)"),
    ("employer", 0.85, rf"\b{_PLACE}(?:['’]s| is)?(?: now| that| who| the one (?:that|who))* (?:employs|employing|pays|paying|signs|(?:took|taken) on) (?:me|my|us)\b"),
    ("employer", 0.85, rf"\b(?:my|a) (?:first day|new job|new role|new position|desk|job|contract) (?:is |was )?(?:at|with|for) {_PLACE}"),
    ("employer", 0.85, rf"\b(?:[Mm]y (?:new |current )?(?:employer|company|boss)(?:['’]s| is| are)(?: now| called)* {_PLACE}|(?P<w>{_NAME}) is (?:now )?my (?:new |current )?(?:employer|company))\b"),
    ("employer", 0.85, rf"\bI (?:do|handle|run|manage|look after)(?: the)? [\w -]{{2,25}} (?:over |out |down )?(?:at|for) {_PLACE}"),
    ("occupation", 0.85, rf"\b(?:I(?:'m|’m| am|['’]ve been| have been| became)?|and)(?: now| actually| currently)* (?:(?:work|working|live|trained|qualified|retrained|career|time|years)(?: to be| as)? )?(?:an? )(?:full-time |part-time |freelance |qualified |trained )?{_WORKER}(?=[,.!;]|$| (?:by|for|now|these days|nowadays|and|at|since|in|full))"),
    ("occupation", 0.85, rf"\b(?:career|life|days|years|decade|living|money|job|trained|trained to work|learned to work|works?|working|retrained|started(?: out)?) (?:as|to be|is being|being) an? {_WORKER}"),
    ("occupation", 0.85, rf"\b(?:made|make|making|chose) (?:being an? |an? )?{_WORKER} (?:my|as my) (?:job|career|living|trade|profession)\b|\bfrom (?:an? )?[a-z-]+ to (?:an? )?{_WORKER.replace('P<v>', 'P<w>')}(?=,|[.!]?$)"),
    ("favourite", 0.6, rf"{_TITLE_BEFORE} is the {_KIND} I (?:like|love|enjoy) (?:the )?(?:best|most)"),
    ("favourite", 0.6, rf"\b[Nn]o(?: other)? {_KIND} (?:beats|comes close to|tops|compares to|touches|can beat) (?P<v>[A-Z][^,.;:!?]{{1,40}}?)(?: for me)?(?=[,.;!]|$)"),
    ("favourite", 0.6, rf"\b[Nn]othing (?:beats|comes close to|tops|compares to) (?P<v>[A-Z][^,.;:!?]{{1,40}}?)(?: for me)?,? (?:it's |it is |that's )?(?:still )?my {_FAVOURITE} (?P<k>\w+)"),
    ("favourite", 0.6, rf"\b[Mm]y (?:number[ -]one|top|go-to|best-loved|best) {_KIND} (?:is|has to be)(?: now)? {_TITLE}"),
    ("favourite", 0.6, rf"{_TITLE_BEFORE} (?:beats|tops|beat|overtook|knocked out) [^,.;]+?,? (?:and )?(?:it's|it is|so it's|is)(?: now)? my {_FAVOURITE} (?P<k>\w+)"),
    ("favourite", 0.6, rf"\b[Mm]y {_FAVOURITE} {_KIND} (?:used to be|was) [^,.;]+?,? (?:but |and )?(?:now |these days |today )?(?:it's|it is)(?: now)? {_TITLE}"),
    ("favourite", 0.6, rf"{_TITLE_BEFORE} is (?:[\w']+ ){{0,3}}my {_FAVOURITE} {_KIND}(?: of all(?: time)?| ever)?(?=[,.;!?]| now|$)"),
    ("allergy", 0.95, r"\b(?:I|[Tt]hey say I) (?:don['’]t|do not|never|didn['’]t)(?: actually| really)? (?:have|had) an? (?:allergy to (?P<v>[a-z ]{2,25}?)|(?P<w>[a-z]{2,25}) allergy)(?=[,.!;]|$)", "no", True),
    ("allergy", 0.95, rf"\b(?:was|am|been)(?: never| not|n['’]t)(?: actually| really)? allergic to {_THING}", "no", True),
    ("allergy", 0.95, rf"\b[Tt]he allergy to {_THING}(?=[^.]*\b(?:mistake|gone|over|wrong|misdiagnos|disappeared|cleared))", "no", True),
    ("allergy", 0.95, r"\b[Mm]y (?P<v>[\w ]{2,25}?) allergy (?:has |is |had )?(?:finally |now |all |just )*(?:went away|cleared|gone|over|disappeared|vanished|healed|passed|gotten better|better)", "no", True),
    ("allergy", 0.95, r"\b(?P<v>[A-Za-z]{3,25}(?: [a-z]+)?) (?:gives?|causes?|triggers?) me (?:an? )?(?:allergic|hives|a rash|a reaction)", "yes"),
    ("allergy", 0.95, rf"\b(?:diagnosed (?:me )?with|confirmed|developed|have|has|got) (?:an? |my )?allergy to {_THING}", "yes"),
    ("allergy", 0.95, r"\b(?:[Mm]y|an?|the) (?P<v>(?!new|old|bad|own|food|seasonal)[\w]{2,25}(?: \w+)?) allergy(?=[^.]*\b(?:diagnos|confirm|act|flar|bother|kill|play|pills?|again|bad|worse)|['’]s (?:act|flar|back|bad))", "yes"),
    ("allergy", 0.95, r"\b(?:confirmed|diagnosed|for|have|treat) (?:me with )?(?:my|an?) (?P<v>[\w]{2,25}) allergy", "yes"),
    ("allergy", 0.95, r"\b(?:[Kk]eep|avoid|skip|stay away from|eat|touch|have) (?:any )?(?P<v>[a-z ]{3,25}?)(?: away(?: from me)?)?,? (?:because |since |as )?I(?:'m|’m| am)(?: \w+ly)? allergic", "yes"),
    ("plan", 0.55, rf"\b(?:flights?|tickets?|a trip|a holiday|a hotel|a cruise|a getaway|the ferry) (?:to|for|in) {_PLACE}(?: (?:are |is )?(?:all )?booked)?(?=[,.!;]|$| (?:booked|in|for|and))", "planned"),
    ("plan", 0.55, rf"\b(?:can['’]t wait (?:to (?:see|visit|go to|be in)|for)|(?:I|[Ww]e)(?:'m|'re|’m|’re| am| are)?(?: all)? (?:(?:spend|spending)(?: [\w']+){{0,3}}? in|set for|excited (?:for|about))) {_PLACE}", "planned"),
    ("plan", 0.55, rf"\b(?:[Oo]ur|[Mm]y)(?: \w+)? (?:trip|holiday|vacation|getaway|honeymoon|break) (?:is|will be|this \w+ is)(?: going)?(?: to| in)? {_PLACE}", "planned"),
    ("plan", 0.55, rf"{_AM}(?: all| finally)? (?:off|headed|heading|jetting off|bound) (?:to|for) {_PLACE}", "planned"),
    ("habit", 0.6, rf"\b(?:I|[Ww]e)(?: \w+ly| always| still| now| try to| like to)* (?:practi[sc]e|fit in|squeeze in|keep up|go for|do|play|attend|train in) (?!(?:the|my|a|it|this|that|what|not|so)\b){_THING}(?=[^.;!?]*\b{_WHEN})", "does"),
    ("habit", 0.6, rf"\bI(?: go to| attend| have| take|['’]ve got| have got| got)(?: an?| my)? (?P<v>[\w]+(?: \w+)?) {_CLASS}\b", "does"),
    ("habit", 0.6, r"\b(?:a|the|an) (?P<v>\w+) (?:course|class|workshop)\b(?<!of course)(?=[.!]?$)", "does"),
    ("habit", 0.6, rf"\b(?:course|class|lessons|workshop) (?:in|on) {_THING}", "does"),
    ("habit", 0.6, rf"\bI(?:'m|’m| am)(?: now| really| currently)? (?:working on|teaching myself|having a go at|trying my hand at|getting into|brushing up on)(?: my| the)? {_THING}", "does"),
    ("habit", 0.6, rf"\bI(?:['’]ve| have)(?: just| now)? (?:been (?:doing|going to|playing|taking|learning|practi[sc]ing|on)|got into|gotten into|signed up for|enrolled (?:in|on)) (?!great|good|well|fine|ok|okay|better|for\b|so\b|really|all\b|some|lately|since|my\b|that|this|it\b|too|pretty|a lot|professionally|different|new|a few|things|everything|nothing|an? (?:accident|fight|argument|rut))(?:an? |the |to )?{_THING}", "does"),
    ("habit", 0.6, r"\b(?:\w+day )?(?:mornings?|nights?|evenings?|afternoons?|weekends?) (?:are|is|means?) (?:for |my )(?P<v>[\w ]{3,20}?)(?: time| night)?(?=[,.!]|$| for me| now)", "does"),
    ("habit", 0.6, rf"\bI(?:'ve| have)(?: been| got)?(?: put on)? an? prescription for {_THING}|\bI (?:need|use|take|must take|have to use)(?: my)? (?P<w>[a-z ]{{3,25}}?) (?:every|each|daily|twice|once|for my|at night|with (?:breakfast|dinner|food|lunch))", "does"),
    ("habit", 0.6, rf"\b(?:was|been|got|were) (?:put on|prescribed|started on) (?!a\b|an\b|the\b|it\b|hold\b){_THING}|\b(?:[Tt]hey|[Dd]octors?|GP)(?: have|['’]ve| has|['’]s)?(?: got| put| started)? me on (?P<w>[a-z][\w ]{{2,30}}?)(?=[,.!;]|$| (?:for|since|again|now))", "does"),
    ("pet", 0.6, rf"\b(?:I|[Ww]e|[Oo]ur|ours|[Mm]y)\b[^.;]*?\b(?:{_PETS})\b[^.;]*?(?:,|-|:| and) ?(?:(?:her|his|its|the) name(?: is|['’]s)|called|named|meet)?(?: is)? ?{_PET_NAME}(?=[.!,]|$)", "has"),
    ("pet", 0.6, rf"(?:^|[,;] ){_PET_NAME}(?: is|['’]s) (?:my|our) (?:[\w-]+ )?{_PETS}\b", "has"),
    ("pet", 0.6, rf"\b(?:[Mm]y|[Oo]ur)(?: \w+)? {_PETS}(?: is|['’]s)? (?:called |named )?{_PET_NAME}\b(?!['’]s)", "has"),
    ("attitude", 0.6, rf"\bI(?:['’](?:m|ve)| am| have)?(?: \w+ly| so| just| always| really| quite| such| still)* (?:adore|fond of|a sucker for|live for|big on|nuts about|mad about|wild about|partial to|obsessed with|addicted to|got (?:a|such a)(?: \w+)? (?:soft spot|thing|weakness|passion) for|(?:can['’]t|cannot|can never) get enough of|have (?:a|such a)(?: \w+)? (?:soft spot|weakness|passion|thing) for) {_THING}", "likes"),
    ("attitude", 0.6, rf"(?:^|[,;.] ?)[Cc]an['’]t get enough of {_THING}|\b[Nn]othing (?:beats|I (?:like|love|enjoy) (?:better|more) than) (?P<w>[a-z][\w ]{{2,30}}?)(?=[.!]|$)", "likes"),
    ("attitude", 0.6, r"(?:^|[,;] )(?P<v>[A-Za-z][\w ]{2,30}?),? (?:(?:really |always |just )?makes? me (?:so )?happy|(?:is|are)(?: totally| really| just)? my (?:thing|jam|passion|favou?rite thing|weakness)|(?:that's|that is)(?: totally| really| so)? my thing)", "likes"),
)  # fmt: skip
"""Tried after the plain rules."""
