"""Questions about this toolkit: each topic has hundreds of wordings, built from shared frames and synonyms."""

from .dialogue import Dialogue, single
from .source import Source
from .toolkit_topics import TOPICS, Topic

_NAMES = ["this", "this", "it", "it", "Modelmount", "the toolkit", "the router", "the LLM routes", "this toolkit", "it all"]

_ACTION_FRAMES = """
How do I {}?|How do I {}?|How do I {}?|How can I {}?|How can I {}?|Can I {}?|How to {}?|how to {}|How would I {}?
How should I {}?|How does one {}?|How do you {}?|How do we {}?|What do I need to {}?|What must I do to {}?|What do I do to {}?
I want to {}.|I'd like to {}.|I need to {}.|I would like to {}. How?|I want to {}, how?|Is it possible to {}?|Is there a way to {}?
Can you show me how to {}?|Can you tell me how to {}?|Could you tell me how to {}?|Tell me how to {}.|Explain how to {}.
Show me how to {}.|Please show me how I can {}.|What is the best way to {}?|What is the way to {}?|What's the easiest way to {}?
Do you know how to {}?|I am trying to {}.|I do not know how to {}.|Where do I {}?|Am I able to {}?|We want to {}.|Help me {}.
Can you help me {}?|Is there an option to {}?|Which steps are needed to {}?|What code do I write to {}?|my boss wants me to {}
i need to {} - how|quick question: how do I {}?|Can I also {}?|Does it let me {}?|May I {}?|What if I want to {}?|{}
Which setting lets me {}?|Which command do I use to {}?|Which function do I call to {}?|What lets me {}?|What helps me to {}?
I cannot find out how to {}.|No idea how to {}.|Any way to {}?|Steps to {}?|What is the trick to {}?|In order to {}, what do I write?
To {}, what do I do?|If I want to {}, what then?|Our users want to {}.|My app should {}.|What is needed to {}?|Is it hard to {}?
Is there some option with which I can {}?|I have to {} today.|so how would we {} then|{}, but how?|I wonder how to {}.|Could I {}?
Somebody asked me to {}.|how could one {}|Do I have to do something to {}?|What do I configure to {}?|we need to {}, what now?
""".replace("\n", "|").strip("|").split("|")

_GERUND_FRAMES = """
{}, how?|{}: how does that work?|How does {} work?|What about {}?|Is {} possible?|I need help with {}.|Tell me about {}.
Where can I read about {}?|Any hints for {}?|What do I need for {}?|a guide for {}?|I have a question about {}.|{} please
""".replace("\n", "|").strip("|").split("|")

_THING_FRAMES = """
{}?|{}|What about {}?|Does it support {}?|Does it support {}?|Is there {}?|Does it have {}?|Do you support {}?|{} please
Tell me about {} here.|How does {} work here?|How do I use {}?|Can I use {}?|Is {} supported?|I need {}.|I want {}.|I use {}.
Where do I find {}?|Where is {}?|Anything about {}?|{} - how?|Show me {}.|Does Modelmount have {}?|Does Modelmount support {}?
What do I do about {}?|Is {} possible?|I am looking for {}.|Does this come with {}?|How about {}?|And {}?|do you have {}
I have a question about {} in this toolkit.|Does the toolkit offer {}?|Do I get {}?|how is {} done|{} in this toolkit?
Is there some kind of {}?|{} somehow?|Do you offer {}?|Can this do {}?|We need {}.|how do I get {}|{}, is that possible?
""".replace("\n", "|").strip("|").split("|")

_OPENINGS = """
I am new here.|Sorry, a basic question.|My boss asks:|Quick one:|One more thing:|I looked in the docs.|For my project:|Another question:
We wonder:|I am stuck.|Nothing works.|I just installed it.|Hi, I have a question.|We are a small team.|I am building an app.
""".replace("\n", "|").strip("|").split("|")
_CLOSINGS = """
Any hints?|Any idea?|What do you suggest?|Which option is it?|How?|Is that possible?|Thanks in advance.|What is the way?|How is it done?
What do I write?|Is there a command?
""".replace("\n", "|").strip("|").split("|")

# Words and what may stand for them. The sentence stays clear, even where its grammar suffers. "make" and "use" have
# no entry, since they mean too many things.
_SYNONYMS = """
user:customer client caller person|users:customers clients callers people|customer:user client|customers:users clients
limit:cap restrict bound|limits:caps restrictions|create:make issue generate|delete:remove erase|remove:delete erase
stop:end halt kill|start:launch boot|launch:start run|request:call|requests:calls|answer:reply response|answers:replies responses
machine:computer box|machines:computers hosts boxes|server:app|see:view show get|change:set configure adjust|set:change configure
cost:price|costs:prices|fast:quick|slow:sluggish|big:large|get:obtain receive|key:token secret|keys:tokens secrets
error:message failure|store:save keep|save:store keep|find:locate|folder:directory|text:document paragraph|texts:documents paragraphs
load:open|block:forbid lock|several:many multiple|many:several multiple|function:method|functions:methods code|example:sample snippet
page:website site|documents:files papers|monitor:watch observe|download:fetch load|pull:download fetch|test:check try|budget:limit
show:print display|replace:swap|connect:link attach|add:put|write:produce|expire:end|revoke:block withdraw|protect:secure guard
money:dollars|build:make|call:ask|cancel:stop abort|abort:cancel stop|count:measure|deploy:host run|background:night|share:pool
""".replace("\n", "|").strip("|").split("|")
_ALTERNATIVES = {word: others.split() for word, _, others in (row.partition(":") for row in _SYNONYMS)}
# In these phrases, a word has another meaning.
_FIXED_PHRASES = ("cut off", "set up", "OpenAI", "Ollama", "llm.", "call my", "Claude", "prompt cache", "function call")

_DOUBLED = {"get", "set", "run", "stop", "cap", "let", "put", "cut", "begin", "plug", "map", "quit", "shut", "log"}


def gerund(action: str) -> str:
    """Returns an action as a noun: "mount this in Koa" as "mounting this in Koa"."""
    verb, space, rest = action.partition(" ")
    if verb in _DOUBLED:
        verb += verb[-1] + "ing"
    elif verb.endswith("e") and not verb.endswith("ee"):
        verb = verb[:-1] + "ing"
    else:
        verb += "ing"
    return verb + space + rest


def _with_synonyms(source: Source, phrase: str) -> str:
    if any(fixed in phrase for fixed in _FIXED_PHRASES) or not source.chance(0.5):
        return phrase
    words = phrase.split(" ")
    return " ".join(source.choice(_ALTERNATIVES[word]) if word in _ALTERNATIVES and source.chance(0.4) else word for word in words)


_FUNCTION_WORDS = set("a an the do does is are i can to of my me it this you we for be there with on in".split())


def _as_keywords(source: Source, text: str) -> str:
    """Leaves out most function words, as in a search box."""
    words = text.rstrip("?.!").split(" ")
    kept = [word for word in words if word.lower() not in _FUNCTION_WORDS or source.chance(0.2)]
    return " ".join(kept) if len(kept) > 1 else text


def _framed(source: Source, topic: Topic) -> tuple[str, str]:
    """Returns a frame and the phrase that it takes. Frame `{}` means that the phrase is a whole question."""
    kinds = [("action", topic.actions, 4.0), ("gerund", topic.actions, 1.0), ("thing", topic.things, 2.0), ("question", topic.questions, 3.0)]
    present = [(name, phrases, weight) for name, phrases, weight in kinds if phrases]
    name, phrases, _ = source.rng.choices(present, [weight for _, _, weight in present])[0]
    phrase = source.choice(phrases)
    if name == "question":
        return "", phrase
    if name == "gerund":
        return source.choice(_GERUND_FRAMES), gerund(phrase)
    return source.choice(_ACTION_FRAMES if name == "action" else _THING_FRAMES), phrase


def _wording(source: Source, topic: Topic) -> str:
    while True:
        frame, phrase = _framed(source, topic)
        # Whole questions are trained, and tests do not use them.
        if (not source.held_out) if frame == "" else source.fits("frame", frame, phrase):
            break
    phrase = phrase.replace("{it}", source.choice(_NAMES))
    if source.held_out:
        text = (frame or "{}").format(phrase)
        return text[0].upper() + text[1:]
    phrase = _with_synonyms(source, phrase)
    text = frame.format(phrase) if frame else phrase
    text = text[0].upper() + text[1:]
    kind = source.rng.random()
    if kind < 0.08:
        return _as_keywords(source, text)
    if kind < 0.15:
        return f"{source.choice(_OPENINGS)} {text}"
    if kind < 0.21:
        return f"{text.rstrip('?.')}{source.choice(['.', '?', ','])} {source.choice(_CLOSINGS)}"
    return text


def toolkit_question(source: Source) -> Dialogue:
    """A question about the toolkit. Held out are combinations of frame and phrase."""
    topic = source.choice(TOPICS)
    return single("toolkit", source.noisy(_wording(source, topic)), topic.answer, "The user asks about the toolkit.")


def toolkit_new_wording(source: Source) -> Dialogue:
    """A question in words of its own, which no frame produces. For tests only."""
    topic = source.choice(TOPICS)
    return single("toolkit", source.choice(topic.held_out), topic.answer, "The user asks about the toolkit.")
