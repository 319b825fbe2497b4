"""What English sentences say of their speaker's life. Tables of patterns. Pure."""
# ruff: noqa: E501 - tables with one rule a line

import re

from memoryos_pipeline.domain.statements_rules import Grammar, frame, rules

_DATE_WORDS = r"(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|March|April|May\b|June|July|August|September|October|November|December|I\b)"
_NAME = rf"{_DATE_WORDS}[A-Z][\w'’.&-]*(?:,? {_DATE_WORDS}[A-Z][\w'’.&-]*)*"
_PLACE = rf"(?P<v>{_NAME})"
_END = (
    r"(?=[,.;:!?()]|$| (?:and|but|because|so|since|when|any ?more|any longer|these days|nowadays|now|again|in (?:the|my|[A-Z][a-z]+|[0-9]{4})|at the|yesterday|today|tonight"
    r"|every|each|twice|once|three|for|on|with|after|before|this|until|completely|entirely|altogether|as|too|at (?:all|home|the moment)"
    r"|a lot|all|these|(?:last|this|next) (?:night|week|month|year|summer|spring|autumn|fall|winter))\b)"
)
_THING = rf"(?P<v>[^,.;:!?()]{{2,50}}?){_END}"
_I = r"\b(?:I|[Ww]e)(?:['’](?:m|ve|d|re|ll))? "
_GAP = r"(?:(?!(?:my|his|her|their|that|who|if|whether|when|about|not|never)\b)[\w'’-]+,? ){0,5}?"
_STILL = (
    r"(?:now |still |really |just |also |currently |absolutely |actually |always |simply |recently |finally |\w+ly )*"
)
_HAVE = r"(?:have |'ve |’ve )?"
_BE = r"(?:'m|’m|'re|’re| am| are|'ve been|’ve been| have been| was always)"
_STOP = r"(?:give up|gave up|given up|giving up|quit|quitted|stop(?:ped)?|drop(?:ped)?(?! off| by| in)|cut out|done with|through with|finished with|abandon(?:ed)?|ceased|kicked|packed in)"
_ROUTINE = r"(?= ?(?:[^.;!?]*\b(?:every|each|twice|once a|times a|daily|weekly|on (?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|in the (?:evenings?|mornings?)|at the moment|for now|these days|regularly|right now|until further)\b))"
_JOBS = (
    r"(?:teacher|engineer|nurse|midwife|doctor|physician|surgeon|paramedic|designer|developer|programmer|technician|lawyer|accountant|chef"
    r"|cook|baker|butcher|barista|bartender|waiter|waitress|writer|journalist|editor|artist|painter|musician|photographer|actor|actress|student"
    r"|scientist|researcher|professor|lecturer|manager|consultant|analyst|architect|electrician|plumber|carpenter|joiner|mechanic|driver"
    r"|pilot|sailor|farmer|gardener|librarian|archivist|translator|interpreter|pharmacist|optician|dentist|veterinarian|vet|therapist|psychologist|counselor|tutor|coach"
    r"|salesperson|cashier|clerk|receptionist|secretary|firefighter|police officer|soldier|freelancer|entrepreneur|founder|tuner|tailor|florist|hairdresser|barber|jeweller"
    r"|banker|economist|statistician|biologist|chemist|physicist|geologist|blacksmith|locksmith|welder|mason|roofer|builder|caretaker|janitor|cleaner|courier|postman|guide)"
)
_FOODS = "meat|fish|dairy|gluten|eggs|pork|beef|seafood|poultry|chicken"
_PETS = r"(?:dog|cat|puppy|kitten|pup|parrot|rabbit|bunny|hamster|guinea pig|turtle|tortoise|horse|pony|budgie|canary|ferret|pet|goldfish|snake|gecko|hen)"
_PET_NAME = r"(?P<v>(?!(?:I|We|It|He|She|They|You|This|That|There|My|Our|Your|Easter|Christmas)\b)[A-Z][\w'’-]+)"
_DRINKS = (
    r"(?P<v>(?:(?:green|black|white|peppermint|mint|chamomile|camomile|herbal|ginger|oolong|jasmine|lemon|rooibos|iced|oat|soy|almond|hot|earl|orange|apple|barley|fruit|nettle) )?"
    r"(?:coffee|espresso|cappuccino|latte|americano|tea|rooibos|chai|matcha|cocoa|chocolate|milk|juice|grey|gray|smoothies?|kombucha|decaf|yerba mate|oolong|lemonade|lemon water|mineral water|tonic|cider|milkshake|protein shake))\b"
)
_CARS = (
    r"(?P<v>Toyota|Honda|Nissan|Mazda|Subaru|Suzuki|Mitsubishi|Lexus|Hyundai|Kia|Ford|Chevrolet|Chevy|Tesla|Jeep|Dodge|Buick|Cadillac|Volkswagen|VW|Audi|BMW|Mercedes|Porsche"
    r"|Opel|Vauxhall|Skoda|Seat|Volvo|Saab|Fiat|Alfa Romeo|Renault|Peugeot|Citro[eë]n|Dacia|Mini|Jaguar|Land Rover|Range Rover|Rover|Polestar|BYD|Cupra|Lancia|Smart|Daihatsu|Isuzu)\b"
)
_VEHICLES = r"\b(?:by |on |the |my |a |taking |to )(?P<v>car|bus|train|bike|bicycle|tram|ferry|e-?scooter|scooter|metro|subway|underground|tube|boat|foot|motorbike|motorcycle|moped|shuttle(?: bus)?|minibus|light rail|monorail|cable car|e-?bike|electric bike|skateboard|rickshaw|van|lorry|streetcar|rideshare|taxi|cab|carpool|trolley|coach)\b"
_TRIP = r"(?:trip|flights?|holiday|vacation|journey|tickets?|getaway|cruise|weekend|honeymoon|tour|visit|plans?)"
_FAVOURITE = r"(?:all-time |absolute |new |current |very |personal )*favou?rite(?: of all)?"
_KIND = r"(?P<k>[\w]{3,15}(?: \w{3,12})?)"
_TITLE = r"(?P<v>(?!no longer|not |still )[^,.;:!?]{2,40}?)(?: now| these days| at the moment| by far)?(?=[,.;:!?]|$)"

_RULES = rules(
    ("name", 0.95, r"\b(?:[Mm]y name is|[Mm]y name's|I(?:'m|’m| am) called|[Cc]all me) (?P<v>[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)?)"),
    ("residence", 0.9, rf"{_I}{_GAP}(?:moved|relocated|moved house|moved in|emigrated)(?: back| over| here| away)*(?: from {_NAME})?(?: back| over)? (?:to|into) {_PLACE}"),
    ("residence", 0.9, rf"{_I}{_GAP}(?:live|living|reside|residing|based|settled|settled down|settling|at home|been living|made (?:a|our|my) home) (?:here |now |again |up |down |out |over |back )*in {_PLACE}"),
    ("residence", 0.9, rf"\b(?:I|[Ww]e)(?:['’]ve| have)(?: now)? lived in {_PLACE}"),
    ("residence", 0.9, rf"\b(?:[Hh]ome (?:for (?:me|us) )?is|(?:[Mm]y|[Oo]ur) (?:new )?(?:home|apartment|house|place|flat|address)(?: \w+)? (?:is in|is|in))(?: now| still)?(?: in)? {_PLACE}"),
    ("residence", 0.9, rf"{_I}{_GAP}call {_PLACE} home\b"),
    ("residence", 0.9, rf"{_I}{_GAP}(?:signed (?:a|the|our) lease|(?:bought|rented|rent|found|got) (?:a|our)(?: \w+){{0,2}} (?:house|home|flat|apartment|condo|place)) in {_PLACE}"),
    ("employer", 0.85, rf"(?:{_I}{_GAP}|\band (?:now |then )?)(?:work(?: \w+){{0,2}}?|working(?: \w+){{0,2}}?|employed|hired|(?:have|got|found|landed|took)(?: \w+)?(?: new)? (?:job|position|role)|(?:start(?:ed|ing)?|began)(?: work(?:ing)?| a (?:new )?job)?|got in) (?:now )?(?:at|for|with|by) {_PLACE}"),
    ("employer", 0.85, rf"\b(?:I|[Ww]e)(?:['’]ve| have) (?:been working|worked) (?:at|for) {_PLACE}"),
    ("employer", 0.85, rf"{_I}{_GAP}(?:joined|joining) {_PLACE}"),
    ("employer", 0.85, rf"\b[Mm]y (?:new |current )?(?:employer|company) is(?: now)? {_PLACE}"),
    ("employer", 0.85, rf"\b(?:jobs?|employers?)\b[^.]*\bI(?:'m|’m| am)(?: now)? with {_PLACE}"),
    ("occupation", 0.85, rf"\b(?:I(?:'m|’m| am| became|['’]ve become| have become|['’]ve been| have been)|[Mm]y job is (?:being|to be)|[Bb]y trade I(?:'m| am))(?: now| actually| currently)? an? (?P<v>(?:[\w-]+ ){{0,2}}?{_JOBS})\b(?! ?(?:'s|’s))"),
    ("occupation", 0.85, rf"(?:{_I}(?:(?:make|earn|made|earned) my |{_GAP})|\band (?:now |then )?)(?:work|working|worked(?<=ve worked)|retrained|retraining|living|career|employed|started(?: out)?|qualified|trained)(?: now| full time| part time)? as an? (?P<v>[\w-]+(?: [\w-]+){{0,3}}?){_END}"),
    ("occupation", 0.85, rf"\b[Mm]y (?:new |current )?(?:profession|occupation|trade|line of work) is(?: now)?(?: an?)? (?P<v>[\w-]+(?: [\w-]+){{0,3}}?){_END}"),
    ("occupation", 0.85, r"\bI (?P<v>[a-z]+(?: [\w-]+){0,4}?) for a living\b"),
    ("occupation", 0.85, r"\bI (?P<v>teach (?!myself|my|him|her|them)[\w-]+(?: [\w-]+){0,2}?) (?:at|in) (?:an? |the |our )?(?:[\w-]+ )*(?:school|college|university|academy)\b"),
    ("age", 0.6, r"\bI(?:'m|’m| am| just turned| turned) (?P<v>\d{1,2})(?: years old)?(?= ?(?:[.,!]|$| (?:today|now|years|yesterday)))"),
    ("birthday", 0.9, r"\b[Mm]y birthday is (?:on )?(?P<v>[A-Z]\w+ \d{1,2}|\d{1,2} [A-Z]\w+)"),
    ("relationship", 0.85, r"\b(?:I|[Ww]e)(?:'m|’m|'re| am| are|'ve| have)?(?: just| finally| still| currently| now| newly| recently| happily| been| gotten| got)* (?P<v>married|engaged|divorced|single|widowed)\b(?! to (?:the idea|my work))"),
    ("relationship", 0.85, r"\bI(?:'m|’m| am)(?: currently)? not (?:seeing|dating) any(?:one|body)|\bI(?: don't|'ve not| have no|'ve got no| do not)(?: currently)?(?: have)?(?: a)? (?:girlfriend|boyfriend|partner)|\b[Ww]e(?:'ve)? (?:just )?(?:broke|broken|split) up|\bI(?:'m| am)(?: still)? unattached", "single"),
    ("relationship", 0.85, r"\b(?:[Ww]e|I) (?:finally |just )?(?:tied the knot|got hitched|eloped)", "married"),
    ("relationship", 0.85, r"\bI(?:'m|’m| am) (?:dating|seeing|going out with) (?:some|a )|\bI(?: now)? have a (?:new )?(?:boyfriend|girlfriend|partner)|\bI(?:'m| am) in a relationship", "partner"),
    ("favourite", 0.6, rf"\b[Mm]y {_FAVOURITE} {_KIND} (?:is|was) (?:no longer|not) [^,.;]+?,? (?:(?:but|and|it's|it is|now|instead|that's) ?)+{_TITLE}"),
    ("favourite", 0.6, rf"\b(?:[Mm]y|[Aa]) {_FAVOURITE} {_KIND}(?: of all time| these days| nowadays| right now)?(?: is| has to be| must be| would be| has always been| became| has become|'s|:)(?: now)? {_TITLE}"),
    ("favourite", 0.6, rf"(?:^|[,;] ?|\b[Nn]ow )(?P<v>[A-Z][^,.;:!?]{{1,40}}?) (?:is|has become|became|has replaced [^,.;]+? as|has overtaken [^,.;]+? as)(?: now)? my {_FAVOURITE} {_KIND}?(?: of all(?: time)?)?(?=[,.;!?]| now|$)"),
    ("favourite", 0.6, rf"\b[Tt]he {_KIND} (?:that )?I (?:love|like) (?:the )?(?:most|best) is {_TITLE}"),
    ("allergy", 0.95, r"\bI (?:have|'ve got) no (?:\w+ )?allergies|\bI(?:'m| am) not allergic to anything", "none", True),
    ("allergy", 0.95, rf"\b(?:not|no longer|n't)(?: \w+ly)? allergic to (?:any )?{_THING}", "no", True),
    ("allergy", 0.95, rf"\b(?:outgrew|outgrown|lost|got over|got rid of)(?: my)? allergy to {_THING}", "no", True),
    ("allergy", 0.95, r"\b[Mm]y allergy to (?P<v>[\w ]{2,25}?) (?:is|has|was)(?: now| all| finally| completely)* (?:gone|cleared|vanished|disappeared|over|cured|healed)", "no", True),
    ("allergy", 0.95, r"\b[Mm]y (?P<v>[\w ]{2,25}?) allergy (?:is|has)(?: now| all| finally)* (?:gone|cleared|vanished|disappeared|over|cured|healed)", "no", True),
    ("allergy", 0.95, rf"\b[Ii](?:'m|’m| am| was|'ve always been|'ve been| have been| have always been| became)?(?: found out| learned| discovered| turn out)?(?: that| to be)?(?: I(?:'m|’m| am))?(?: \w+ly| still| now| very| really)* (?:allergic|intolerant) to {_THING}", "yes"),
    ("allergy", 0.95, rf"\b[Ii] (?:react(?: \w+)? to|break out in hives from|can't tolerate) {_THING}", "yes"),
    ("allergy", 0.95, r"\b(?:with|of|from|eat|have|avoid|near) (?!any)(?P<v>[a-z ]{3,25}?),? (?:because |since |as )?I(?:'m|’m| am)(?: \w+ly| so| very)* allergic(?=[.,!;]|$| and)", "yes"),
    ("allergy", 0.95, r"\bI(?:'ve| have)(?: got| had)? an? (?:\w+ )?(?P<v>[\w]{2,25}) allergy", "yes"),
    ("allergy", 0.95, rf"\bI(?:'ve| have)(?: got| had)? an? (?:\w+ )?allergy to {_THING}", "yes"),
    ("diet", 0.8, r"\b(?:no longer|not|n't|never really|stopped being|quit being|gave up being|done being)(?: really)?(?: a| an)? (?:strict(?:ly)? )?(?:vegetarian|vegan|pescatarian)\b", "none", True),
    ("diet", 0.8, r"\bI(?:'m|’m| am| became|'ve become| have become| went|'ve gone|'ve been| have been| turned|'ve turned| live as)(?: now| a| strictly| still| fully| always| mostly| lifelong| completely)* (?P<v>vegetarian|vegan|pescatarian)\b"),
    ("eats", 0.7, rf"\bI(?: do not| don't| don’t| no longer|'ve stopped| stopped| never| can't| won't|'ve given up| gave up| quit| avoid)(?: ever| \w+ly)?(?: eat(?:ing)?| touch(?:ing)?| have)?(?: any)? (?P<v>{_FOODS})\b", "no", True),
    ("eats", 0.7, rf"\bI(?: do not| don't| don’t| no longer|'ve stopped| stopped| never)(?: ever)? (?:eat|touch)(?:ing)? (?:any )?(?:{_FOODS})(?:, (?:or )?| or | and )(?P<v>{_FOODS})\b", "no", True),
    ("eats", 0.7, rf"\bI(?:'m| am|'ve| have)?(?: now| started to| started| can| been| back to| went back to| begun| began)*(?: eat| eating) (?P<v>{_FOODS})(?: again| now|\b(?=[^.]* (?:again|now|since)))", "yes"),
    ("eats", 0.7, rf"\bI(?:'ve| have)? (?:started|begun|began|went back|gone back)(?: to)?(?: eat| eating) (?P<v>{_FOODS})\b", "yes"),
    ("plan", 0.55, rf"{_I}(?:just )?{_HAVE}(?:had to |have to )?(?:cancell?ed|cancel|called off|call off|postponed|put off|given up on|gave up on|scrapped|shelved|ruled out)(?: (?:the|our|my|that))?(?: {_TRIP})?(?: (?:to|in))? {_PLACE}(?: {_TRIP})?", "dropped", True),
    ("plan", 0.55, rf"\b(?:[Tt]he|[Oo]ur|[Mm]y) {_TRIP} (?:to|in) {_PLACE} (?:is|was|has been|got|had to be|fell|won't)(?: now| all)* ?(?:off|cancell?ed|called off|postponed|dropped|scrapped|through|happen)", "dropped", True),
    ("plan", 0.55, rf"\b(?:[Tt]he|[Oo]ur|[Mm]y) {_PLACE} {_TRIP} (?:is|was|has been|got|had to be|fell|won't)(?: now| all)* ?(?:off|cancell?ed|called off|postponed|dropped|scrapped|through|happen)", "dropped", True),
    ("plan", 0.55, rf"\b(?:I|[Ww]e)(?:'m|’m|'re|’re| am| are| won't| will)?(?: not| no longer| never)?(?: be)?(?: going| flying| travell?ing| visiting| go| fly| travel| visit)(?: to)? {_PLACE}(?= after all| any ?more| any longer)", "dropped", True),
    ("plan", 0.55, rf"\b(?:I|[Ww]e)(?:'m|’m|'re|’re| am| are| won't) (?:not|no longer) (?:be )?(?:going|flying|travell?ing|visiting|heading) (?:to )?{_PLACE}", "dropped", True),
    ("plan", 0.55, rf"\b(?:I|[Ww]e)(?:'m|’m|'re|’re| am| are)(?: \w+ly| now)? (?:going|flying|travell?ing|off|heading|driving) to {_PLACE}(?! after all| any ?more)", "planned"),
    ("plan", 0.55, rf"\b(?:I|[Ww]e)(?:'m|’m|'re|’re|'ve|’ve| am| are| have)?(?: \w+ly| just| now| also)? (?:plan|planning|planned|book|booked|booking|reserved|organi[sz]ed|organi[sz]ing|looking forward to|intend|want|hope|hoping)(?: to (?:go|visit|travel|fly|see))?(?: (?:a|an|our|my|the|some))?(?: \w+)?(?: {_TRIP})?(?: (?:to|in|for))? {_PLACE}", "planned"),
    ("plan", 0.55, rf"\b(?:I|[Ww]e){_HAVE}? ?(?:decided on|settled on) {_THING}", "planned"),
    ("plan", 0.55, rf"\b(?:I|[Ww]e){_HAVE}? ?(?:decided against|ruled out|dropped the idea of) {_THING}", "dropped", True),
    ("pet", 0.6, rf"(?:^(?:[A-Z][a-z]+ly,? |Yesterday,? |Today,? )?|[,;.] |\b(?:our|my|poor|sweet|old|dear) (?:\w+ )?){_PET_NAME} (?:sadly |finally |just |has |had |was |is )*(?:passed|died|dead|put (?:down|to sleep)|ran away|run away|(?:been )?rehomed|(?:been )?adopted by|gone(?! down| up| on| off| to|\w)|crossed (?:the|over)|no longer (?:with|ours|lives)|(?:lives|living|stays|staying|moved in) (?:now )?with)\b", "gone", True),
    ("pet", 0.6, rf"\b(?:give|gave|given|giving) {_PET_NAME} (?:away|up|to)\b|\b(?:no longer have|don't have|lost|rehomed|said goodbye to|put down|buried|parted with) (?:our (?:\w+ )?|my (?:\w+ )?)?(?P<w>[A-Z][\w'’-]+)", "gone", True),
    ("pet", 0.6, rf"\b(?:I|[Ww]e|[Mm]y|[Oo]ur)\b{_GAP.replace('my|his', 'his')}[^.;]*?\b{_PETS}(?: is| was|,)? (?:called|named|by the name of) {_PET_NAME}", "has"),
    ("pet", 0.6, rf"\b(?:I|[Ww]e)\b[^.;]*?\b{_PETS}\b[^.;]*?\b(?:named|called|call|calling|name) (?:her|him|it|them) {_PET_NAME}", "has"),
    ("pet", 0.6, rf"\b(?:[Mm]y|[Oo]ur)(?: \w+)? {_PETS},? {_PET_NAME}\b(?!'s|’s)", "has"),
    ("pet", 0.6, rf"\b(?:[Mm]y|[Oo]ur)(?: \w+)? {_PETS}(?:'s|’s) name is {_PET_NAME}", "has"),
    ("habit", 0.6, rf"{_I}(?:finally |just |had to |decided to |completely |\w+ly )*{_STOP}(?: on)?(?: (?:doing|taking|learning|studying|practi[sc]ing|playing|going(?: to)?|using|attending|drinking))? {_THING}", "quit", True),
    ("habit", 0.6, rf"\bI(?:'ve|’ve| have) (?:finally |just |completely |\w+ly )*(?:{_STOP})(?: on)?(?: (?:doing|taking|learning|studying|practi[sc]ing|playing|going(?: to)?|using))? {_THING}", "quit", True),
    ("habit", 0.6, rf"\b(?:I|[Ww]e) (?:no longer (?:do|take|need|go|play|learn|study|use|practi[sc]e|attend)|(?:don't|do not|don’t) (?:do|take|need|go|play|learn|study|use|practi[sc]e)(?= [^.;]*(?:any ?more|any longer|these days|now)\b)) {_THING}", "quit", True),
    ("habit", 0.6, rf"\b(?:I(?:'m|’m| am)|[Ww]e(?:'re| are)) (?:no longer|not) (?:doing|taking|learning|studying|playing|going|on|using|practi[sc]ing) {_THING}", "quit", True),
    ("habit", 0.6, rf"\b(?:took|taken|take) me off {_THING}|\bI(?:'m|’m| am) off (?!to\b|work\b|on\b|for\b)(?:the )?(?P<w>[^,.;:!?()]{{2,40}}?)(?= since|[,.;]|$| now| for good)", "quit", True),
    ("habit", 0.6, rf"\b(?:put|started) me on {_THING}|\b(?:prescribed me|gave me(?= [^,.;]*(?:pills?|tablets?|drops|cream|medic\w+|antibiotics?|injections?|shots?|syrup|inhaler|vitamins?|supplements?))) (?P<w>[^,.;:!?()]{{2,40}}?)(?=[,.;]|$| for\b)", "does"),
    ("habit", 0.6, rf"{_I}{_STILL}(?:took up|taken up|taking up|signed up for|enrolled in|joined a|started|begun|began|got into)(?: (?:to (?:do|learn|play|study|take)|doing|learning|taking|playing|studying|practi[sc]ing))? (?!at\b|to\b|with\b|as\b|by\b|work){_THING}", "does"),
    ("habit", 0.6, rf"\b(?:I(?:'m|’m| am)|[Ww]e(?:'re| are)) {_STILL}(?:learning|studying|practi[sc]ing|teaching myself)(?: to (?:play|speak))? {_THING}", "does"),
    ("habit", 0.6, rf"\bI {_STILL}(?:learn|study|practi[sc]e) {_THING}", "does"),
    ("habit", 0.6, rf"\b(?:I(?:'m|’m| am)|[Ww]e(?:'re| are)) {_STILL}(?:on|taking|doing|using) {_THING}{_ROUTINE}", "does"),
    ("habit", 0.6, rf"\b(?:I|[Ww]e) {_STILL}(?:have to |need to |must |like to )?(?:do|go|take|play|use) (?!(?:the|a|my) (?:bus|train|tram|ferry|metro|subway|car|bike)|to\b|home\b|by\b){_THING}{_ROUTINE}", "does"),
    ("habit", 0.6, r"(?:^|[,;] )(?P<v>[\w ]{2,25}?) (?:is|has become|became) (?:a )?(?:big |fixed |regular )?(?:part of my (?:week|day|life|routine)|my (?:routine|hobby|new hobby|thing))", "does"),
    ("attitude", 0.6, rf"\bI(?:'m|’m| am|'ve|’ve| have)? (?:(?:\w+ly|still|now|just|really|also|finally) )*(?:hate|dislike|loathe|detest|despise|(?:can't|can’t|cannot|couldn't) (?:stand|bear|abide|take)"
     rf"|(?:don't|don’t|do not|no longer|never|didn't)(?: really| even| much)? (?:like|love|enjoy|care for|want)|stopped (?:liking|loving|enjoying)|(?:gone|went|been) off|(?:sick|tired|fed up|bored) (?:of|with)|over) {_THING}", "dislikes", True),
    ("attitude", 0.6, rf"\bI(?:'m|’m| am) (?:not|no longer)(?: really)? (?:a (?:big |huge )?(?:fan of|lover of)|into|fond of|crazy about|keen on|interested in) {_THING}", "dislikes", True),
    ("attitude", 0.6, rf"\bI(?:'ve| have)? lost (?:all |my )*(?:interest|taste|love|appetite|enthusiasm) (?:in|for) {_THING}", "dislikes", True),
    ("attitude", 0.6, rf"\bI(?: \w+ly| still| now| just| do| also| so)* (?:love|like|enjoy|adore|prefer) (?!to (?:think|know|see|say|hear)){_THING}", "likes"),
    ("attitude", 0.6, rf"\bI(?:'m|’m| am|'ve been)(?: really| so| super| very| also| quite| such| \w+ly)* (?:a (?:big |huge |great |real )?(?:fan of|lover of)|into|fond of|crazy about|mad about|keen on|hooked on|obsessed with) {_THING}", "likes"),
)  # fmt: skip
_FRAMES = (
    frame("drink", 0.5, r"\b(?:mornings?|breakfast|every day|each day|my day|usual|instead of|wake up|waking|get(?:ting)? up|out of bed|first thing)\b|\bswitch(?:ed)? (?:from|to)\b", _DRINKS),
    frame("commute", 0.5, r"\b(?:to (?:work|the office|my (?:office|job))|commut\w+|get to work)\b", _VEHICLES),
    frame("car", 0.5, r"\b(?:drive|drives|driving|my (?:\w+ )?car|our (?:\w+ )?car|own|owned|we have|i have|['’]ve got|have got|bought|buy|traded|swap(?:ped)?|replaced?|sold|new car|my ride|we['’]ve had|i['’]ve had|had (?:my|our)|driveway(?=, | and |.*(?:mine|ours))|garage|goodbye|get around|picked up|upgrad\w+|i['’]?m in an?|runabout|wheels)\b", _CARS),
)  # fmt: skip
_PERSON = (
    r"(?:mother|mom|mum|father|dad|parents?|brother|sister|siblings?|wife|husband|partner|son|daughter|kids?|child|children|niece|nephew|cousin|uncle|aunt"
    r"|grand\w+|friends?|neighbou?rs?|boss|manager|colleagues?|cowork\w+|room ?mate|flat ?mate|teacher|dentist|doctor|girlfriend|boyfriend|fianc\w+|in-laws?"
    r"|god\w+|step\w+|nan|nana|gran|granny|ex|coach|trainer|tutor|mentor|physio|therapist|accountant|lawyer|landlord|landlady|classmate|buddy|mate|he|she|they|someone|somebody|everyone|people)"
)

GRAMMAR = Grammar(
    rules=_RULES,
    frames=_FRAMES,
    left_before=re.compile(
        r"\b(?:instead of|rather than|no more|no longer|not|n't|n’t|stopped(?: (?:having|taking|drinking|using|driving|riding))?|quit|gave up|given up|got rid of"
        r"|getting rid of|sold|left|replaced?|traded|swapped|ditched|dropped|from|used to (?:have|drink|take|drive|own)|off|scrapped|switched from|goodbye(?: to)?|bye bye|(?:place|spot) of|used to mean|hung up|rented|hired|test[ -]drove|tried|learned to drive in|sold me on)"
        r"(?: (?:having|taking|drinking|using|driving|being|working as|a|an|the|my|our|old|daily|morning|by|usual))*\s*$",
        re.IGNORECASE,
    ),
    left_after=re.compile(
        r"\s*(?:,? ?(?:is|was|got|made|gave|kept|became|has|had) (?:gone|history|too|over|out|me\b|been replaced|died|broke|sold|making|giving)| in for (?:a|an) | out for )",
        re.IGNORECASE,
    ),
    clause=re.compile(r"[,;:.]|\b(?:and|but|these days|so|now)\b"),
    generic=re.compile(r"(?: (?:lessons?|class(?:es)?|courses?|practice|training|sessions?|club))+$"),
    other=re.compile(
        rf"\b(?i:{_PERSON})(?:['’]s)?\b|\b[Mm]y (?!new\b|old\b|own\b|dear\b)(?:[a-z-]+ ){{1,3}}(?=[A-Z][a-z]+\b)(?!I\b)"
    ),
    own=re.compile(
        r"\b(?:I|we|me|us|my|our)(?:['’]\w+)?\b|^(?:just |finally )?(?:been|got|gave|quit|left|sold|bought|swapped|switched|traded|ditched|moved|started|stopped|joined|can['’]t) ",
        re.IGNORECASE,
    ),
)
