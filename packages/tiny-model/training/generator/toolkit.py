"""Questions about this toolkit: each topic has dozens of wordings, built from shared frames."""

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
""".replace("\n", "|").strip("|").split("|")

_THING_FRAMES = """
{}?|{}|What about {}?|Does it support {}?|Does it support {}?|Is there {}?|Does it have {}?|Do you support {}?|{} please
Tell me about {} here.|How does {} work here?|How do I use {}?|Can I use {}?|Is {} supported?|I need {}.|I want {}.|I use {}.
Where do I find {}?|Where is {}?|Anything about {}?|{} - how?|Show me {}.|Does Modelmount have {}?|Does Modelmount support {}?
What do I do about {}?|Is {} possible?|I am looking for {}.|Does this come with {}?|How about {}?|And {}?|do you have {}
I have a question about {} in this toolkit.|Does the toolkit offer {}?|Do I get {}?|how is {} done|{} in this toolkit?
""".replace("\n", "|").strip("|").split("|")


def _wording(source: Source, topic: Topic) -> str:
    kinds = [(topic.actions, 5.0), (topic.things, 2.0), (topic.questions, 3.0)]
    present = [(kind, weight) for kind, weight in kinds if kind]
    while True:
        kind = source.rng.choices([kind for kind, _ in present], [weight for _, weight in present])[0]
        phrase = source.choice(kind)
        if kind is topic.questions:
            return phrase
        frame = source.choice(_ACTION_FRAMES if kind is topic.actions else _THING_FRAMES)
        if source.fits("frame", frame, phrase):
            text = frame.format(phrase.replace("{it}", source.choice(_NAMES)))
            return text[0].upper() + text[1:]


def toolkit_question(source: Source) -> Dialogue:
    """A question about the toolkit. Held out are combinations of frame and phrase."""
    topic = source.choice(TOPICS)
    question = _wording(source, topic)
    while source.held_out and question in topic.questions:
        question = _wording(source, topic)
    return single("toolkit", source.noisy(question), topic.answer, "The user asks about the toolkit.")


def toolkit_new_wording(source: Source) -> Dialogue:
    """A question in words of its own, which no frame produces. For tests only."""
    topic = source.choice(TOPICS)
    question = source.choice(topic.held_out)
    return single("toolkit", question, topic.answer, "The user asks about the toolkit.")
