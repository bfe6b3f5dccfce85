"""Questions about facts in the prompt, and one fact in a long text."""

from .dialogue import Dialogue, Turn, single
from .source import Source
from .words import COLORS, DAYS, MONTHS

NOT_FOUND = "I cannot find that in the context."
_NOTED = "Thank you, I will remember that."
_ATTRIBUTES = """password code price color owner capital size weight address director author leader number key symbol
height age status version port limit budget model manager phone date day room floor email""".split()
_WHO = {"owner", "director", "author", "leader", "manager"}
_SYSTEM = ["Answer with the help of this context:\n", "Context:\n", "Use the following facts to answer.\n", "Facts: ",
           "You are a helpful assistant. Use this context:\n", "You are a support agent. ", "Answer from these texts only:\n\n"]
_USER = ["Context:\n{}\n\nQuestion: {}", "{}\n\n{}", "Use this context to answer.\n{}\n\n{}", "Context: {}\nQuestion: {}", "{} {}",
         "Context: {}\n\nQuestion: {}", "Text: {}\n\n{}", "Here are some facts:\n{}\n\n{}", "Documents:\n{}\n\nQuestion: {}"]


def _entity(source: Source) -> str:
    return source.choice([
        source.name,
        lambda: f"the {source.word()}",
        lambda: source.word().capitalize(),
        lambda: f"the {source.word()} {source.word()}",
        lambda: f"{source.choice(['Team', 'Project', 'Doctor', 'Hotel'])} {source.word().capitalize()}",
    ])()


def _value(source: Source) -> str:
    return source.choice([
        source.word, source.name, source.code, lambda: str(source.number(5000)), lambda: source.words(2, 3),
        lambda: source.choice(COLORS), lambda: f"{source.word().capitalize()} {source.choice(['Street', 'Road', 'Lane'])} {source.integer(1, 99)}",
    ])()


def _facts(source: Source, count: int) -> list[tuple[str, str, str]]:
    """Distinct facts. Some share their attribute or their entity, so that both must be read."""
    facts: dict[tuple[str, str], str] = {}
    while len(facts) < count:
        attribute = source.choice(_ATTRIBUTES) if source.chance(0.8) else source.word()
        entity = _entity(source)
        if facts and source.chance(0.5):
            known = source.choice(list(facts))
            attribute, entity = (known[0], entity) if source.chance(0.5) else (attribute, known[1])
        facts.setdefault((attribute, entity), _value(source))
    return [(attribute, entity, value) for (attribute, entity), value in facts.items()]


def _question(source: Source, attribute: str, entity: str) -> str:
    questions = [
        "What is the {a} of {e}?", "What is the {a} of {e}?", "Tell me the {a} of {e}.", "Which {a} does {e} have?",
        "Do you know the {a} of {e}?", "I need the {a} of {e}.", "What's the {a} of {e}?", "Please give me the {a} of {e}.",
        "{a} of {e}?",
    ]
    if attribute in _WHO:
        questions += ["Who is the {a} of {e}?"] * 4
    text = source.choice(questions).format(a=attribute, e=entity)
    return text[0].upper() + text[1:]


def context_question(source: Source) -> Dialogue:
    facts = _facts(source, source.integer(1, 8))
    attribute, entity, value = source.choice(facts)
    lines = [f"The {a} of {e} is {v}." for a, e, v in facts]
    if source.chance(0.3):
        lines.insert(source.integer(0, len(lines)), filler(source))
    text = " ".join(lines) if source.chance(0.6) else "\n".join(f"- {line}" for line in lines)
    answer = f"The {attribute} of {entity} is {value}."
    if source.chance(0.25):
        answer = NOT_FOUND
        attribute, entity = _missing(source, facts)
    question = _question(source, attribute, entity)
    return _asked(source, "context", text, question, answer, "I look it up in the context.")


def _missing(source: Source, facts: list[tuple[str, str, str]]) -> tuple[str, str]:
    """A pair that is not in the facts, though each half may be."""
    known = {(a, e) for a, e, _ in facts}
    while True:
        attribute = source.choice(facts)[0] if source.chance(0.4) else source.choice(_ATTRIBUTES)
        entity = source.choice(facts)[1] if source.chance(0.4) else _entity(source)
        if (attribute, entity) not in known:
            return attribute, entity


def _asked(source: Source, skill: str, text: str, question: str, answer: str, thought: str) -> Dialogue:
    kind = source.rng.random()
    if kind < 0.4:
        return Dialogue(skill, (Turn(question, answer, thought),), system=source.choice(_SYSTEM) + text)
    if kind < 0.8:
        return single(skill, source.choice(_USER).format(text, question), answer, thought)
    return Dialogue(skill, (Turn(text, _NOTED, "The user tells me something."), Turn(question, answer, thought)))


def filler(source: Source) -> str:
    return source.choice([
        lambda: f"The {source.word()} {source.word()} is near the {source.word()}.",
        lambda: f"{source.name()} went to {source.city()} on {source.choice(DAYS)}.",
        lambda: f"It was a {source.word()} day in {source.choice(MONTHS)}.",
        lambda: f"{source.name()} and {source.name()} talked about the {source.word()}.",
        lambda: f"Nobody knew why the {source.word()} was so {source.word()}.",
        lambda: f"There were {source.number()} {source.word()} in the {source.word()}.",
        lambda: f"A {source.word()} stood by the {source.word()}, and {source.name()} saw it.",
        lambda: source.words(4, 12).capitalize() + ".",
    ])()


_SECRETS = ["password", "secret code", "magic word", "access code", "secret number", "code word", "secret", "pin"]


def needle(source: Source, sentences: int | None = None) -> Dialogue:
    """One secret in a text of many sentences of about 14 tokens."""
    count = source.choice([3, 6, 10, 20, 40]) if sentences is None else sentences
    text = [filler(source) for _ in range(count)]
    secret, value = source.choice(_SECRETS), source.code()
    frame = source.choice(["The {} is {}.", "Remember: the {} is {}.", "Important: the {} is {}.", "Note that the {} is {}."])
    text.insert(source.integer(0, len(text)), frame.format(secret, value))
    questions = ["What is the {}?", "What is the {}?", "Tell me the {}.", "What was the {}?", "Which {} is in the text?"]
    question = source.choice(questions).format(secret)
    answer, thought = f"The {secret} is {value}.", f"I look for the {secret} in the text."
    whole = " ".join(text)
    kind = source.rng.random()
    if kind < 0.4:
        return single("needle", whole + source.choice(["\n\n", " ", "\n"]) + question, answer, thought)
    if kind < 0.7:
        return Dialogue("needle", (Turn(whole, _NOTED, "The user tells me something."), Turn(question, answer, thought)))
    return Dialogue("needle", (Turn(question, answer, thought),), system=whole)


def long_needle(source: Source, sentences: int) -> Dialogue:
    """Two to four secrets in a long text, and a question about each."""
    text = [filler(source) for _ in range(sentences)]
    secrets = {secret: source.code() for secret in source.sample(_SECRETS[:6], source.integer(2, 4))}
    for secret, value in secrets.items():
        text.insert(source.integer(0, len(text)), source.choice(["The {} is {}.", "Remember: the {} is {}."]).format(secret, value))
    asked = [
        Turn(source.choice(["What is the {}?", "Tell me the {}."]).format(secret), f"The {secret} is {value}.",
             f"I look for the {secret} in the text.")
        for secret, value in secrets.items()
    ]  # fmt: skip
    source.rng.shuffle(asked)
    whole = " ".join(text)
    if source.chance(0.5):
        first = Turn(f"{whole}\n\n{asked[0].user}", asked[0].answer, asked[0].thought)
        return Dialogue("needle", (first, *asked[1:]))
    return Dialogue("needle", tuple(asked), system=whole)
