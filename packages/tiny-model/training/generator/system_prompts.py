"""System prompts that change the answer: one word, JSON, a fixed beginning or end, a name."""

import json
from dataclasses import replace

from .arithmetic import add, multiply, subtract
from .chat import exchange, unknown
from .concepts import concept
from .copying import repeat
from .counting import count
from .dialogue import Dialogue, Turn, single
from .facts import fact, sentiment
from .source import Source
from .toolkit import toolkit_question
from .words import DAYS, MONTHS

PLAIN = [
    "You are a helpful assistant.", "You are a helpful assistant.", "You are a friendly assistant.", "Be helpful and short.",
    "You are a helpful AI assistant.", "You are an assistant for a small shop.", "Answer the questions of the user.",
    "You help users of the toolkit.", "You are a helpful, honest assistant.", "You are an AI assistant. Be concise.",
    "You are a support agent.", "Be brief and friendly.", "You are an expert in software.", "Answer politely.",
]


_ROLES = ["a helpful assistant", "an AI assistant", "a coding assistant", "a support agent", "an expert", "a friendly bot",
          "a chat assistant", "a customer service agent", "a guide", "an assistant for developers", "a careful assistant"]
_RULES = ["Be concise.", "Be polite.", "Answer briefly.", "Use simple words.", "Do not make things up.", "Answer in English.",
          "If you do not know something, say so.", "Be friendly.", "Think before you answer.", "Use Markdown where it helps.",
          "Keep your answers short.", "Help the user with questions about the product.", "Never use bad words."]


def plain_prompt(source: Source) -> str:
    """A system prompt that changes no answer."""
    if source.chance(0.5):
        return source.choice(PLAIN)
    parts = [f"You are {source.choice(_ROLES)}."] if source.chance(0.8) else []
    parts += source.sample(_RULES, source.integer(1, 3))
    if source.chance(0.15):
        parts.append(f"Today is {source.choice(DAYS)}, {source.choice(MONTHS)} {source.integer(1, 28)}.")
    return " ".join(parts)


def _short_question(source: Source) -> Dialogue:
    return source.choice([fact, fact, add, add, multiply, sentiment, subtract])(source)


def simple_question(source: Source) -> Dialogue:
    return source.choice([fact, add, exchange, concept, toolkit_question, repeat, fact, count, unknown])(source)


def _one_word_prompt(source: Source) -> str:
    verb = source.choice(["Answer", "Reply", "Respond"])
    how = source.choice(["in one word", "with one word", "using one word", "in a single word", "with a single word",
                         "with just one word", "in one word only", "with exactly one word"])
    return source.choice([
        f"{verb} {how}.", f"Always {verb.lower()} {how}.", f"Please {verb.lower()} {how}.", f"You {verb.lower()} {how}.",
        f"You are a helpful assistant. {verb} {how}.", f"You are a terse bot. {verb} {how}.", "One word answers only.",
        "Use one word.", "Be very short: one word.", "Give one word answers.", "Just one word, no more.",
        "You are a bot that answers in one word.", "Your answers have one word.", "Never use more than one word.",
    ])


def one_word(source: Source) -> Dialogue:
    question = _short_question(source)
    turn = question.turns[0]
    return Dialogue("system: one word", (replace(turn, answer=question.short),), system=_one_word_prompt(source))


def json_answer(source: Source) -> Dialogue:
    question = _short_question(source)
    key = source.choice(["answer", "answer", "result", "value", "reply", "output", source.word()])
    quoted = source.choice([key, f'"{key}"'])
    verb = source.choice(["Answer", "Reply", "Respond", "Always answer", "Always respond", "Please reply"])
    how = source.choice(["in JSON", "with JSON", "as JSON", "as a JSON object", "with a JSON object", "in JSON format"])
    system = source.choice([
        f"{verb} {how} with the key {quoted}.", f"{verb} {how} that has the key {quoted}.", f"{verb} {how}. Use the key {quoted}.",
        f"{verb} {how}. Its only key is {quoted}.", f'{verb} {how} like {{"{key}": "..."}}.', f"{verb} {how}, key {quoted}.",
    ])
    turn = question.turns[0]
    answer = json.dumps({key: question.short})
    return Dialogue("system: JSON", (replace(turn, answer=answer),), system=system)


def fixed_text(source: Source) -> Dialogue:
    """Always ends or starts with a given text."""
    turn = simple_question(source).turns[0]
    text = source.choice([
        lambda: source.words(1, 4),
        lambda: source.words(1, 3).capitalize() + "!",
        lambda: source.words(1, 4).capitalize() + ".",
        lambda: source.choice(["Have a nice day!", "Arr!", "meow", "Cheers!", "Over.", "Thank you for asking.", "Roger."]),
    ])()
    quoted = f'"{text}"' if source.chance(0.6) else text
    when = source.choice(["your answer", "your answers", "every answer", "each answer", "every reply", "each message", "all replies"])
    if source.chance(0.65):
        verb = source.choice(["Always end", "You must end", "End", "Finish", "Always finish", "Close", "You always end"])
        answer = f"{turn.answer} {text}"
    else:
        verb = source.choice(["Always start", "You must start", "Start", "Begin", "Always begin", "Open", "You always start"])
        answer = f"{text} {turn.answer}"
    system = f"{verb} {when} with{source.choice(['', '', ':'])} {quoted}"
    if source.chance(0.15):
        system = f"{verb.split()[-1].capitalize()} with {quoted}"
    if source.chance(0.4):
        system = f"{plain_prompt(source)} {system}"
    return Dialogue("system: start or end", (replace(turn, answer=answer),), system=system)


def own_name(source: Source) -> Dialogue:
    name = source.name()
    while name == "Tiny":
        name = source.name()
    role = source.choice([
        "a helpful assistant", "a friendly robot", "a chat bot", "a helpful bot", f"the assistant of {source.name()}",
        f"a support agent for {source.word().capitalize()}", f"a {source.word()} expert", f"a {source.word()}", "a pirate",
        f"the assistant of the shop {source.word().capitalize()}", "a wizard", f"the bot of the {source.word()} company",
    ])
    system = source.choice([
        "You are {n}.", "You are {n}, {r}.", "Your name is {n}.", "You are {r}. Your name is {n}.", "You are {r} named {n}.",
        "You are {r} called {n}.", "Your name is {n} and you are {r}.", "You are called {n}.", "Act as {n}, {r}.",
    ]).format(n=name, r=role)
    if source.chance(0.3):
        system += " " + source.choice(["Be helpful.", "Be short.", "Be polite.", "Help the user.", "Stay friendly."])
    question = source.noisy(source.choice([
        "What is your name?", "Who are you?", "What's your name?", "Do you have a name?", "Introduce yourself.",
        "Tell me your name.", "How are you called?", "May I know your name?", "Please introduce yourself.", "Your name?",
        "Who am I talking to?", "What can I call you?", "Say your name.",
    ]))
    return Dialogue("system: name", (Turn(question, f"My name is {name}.", "My name is in the system prompt."),), system=system)


def plain(source: Source) -> Dialogue:
    """A plain system prompt changes nothing."""
    return replace(simple_question(source), system=plain_prompt(source))
