"""What the user has told before, and what the user has not told."""

from collections.abc import Callable
from dataclasses import dataclass

from .dialogue import Dialogue, Turn, single
from .source import Source
from .system_prompts import simple_question
from .words import COLORS, FOODS, JOBS

NOT_TOLD = "You have not told me that yet."


@dataclass(frozen=True)
class _Fact:
    value: Callable[[Source], str]
    told: list[str]
    asked: list[str]
    noted: str
    recalled: str


_FACTS = [
    _Fact(lambda s: s.name(),
          ["My name is {}.", "I am {}.", "I'm {}.", "Hi, my name is {}.", "Hello, I am {}.", "Call me {}.", "You can call me {}.",
           "Hey, {} here.", "This is {}.", "People call me {}.", "Hi! My name is {}."],
          ["What is my name?", "Do you remember my name?", "Who am I?", "What's my name?", "Tell me my name.", "My name?",
           "How am I called?", "Do you know my name?", "Say my name.", "What did I say my name is?"],
          "Nice to meet you, {}!", "Your name is {}."),
    _Fact(lambda s: s.choice(COLORS) if s.chance(0.7) else s.word(),
          ["My favorite color is {}.", "I like the color {}.", "The color I like most is {}.", "My favourite color is {}."],
          ["What is my favorite color?", "Which color do I like?", "Do you know my favorite color?", "Which color is my favorite?",
           "What color do I like most?", "My favorite color?"],
          "I will remember that your favorite color is {}.", "Your favorite color is {}."),
    _Fact(lambda s: s.city(),
          ["I live in {}.", "My home is in {}.", "I am from {}.", "My city is {}.", "I come from {}.", "My house is in {}."],
          ["Where do I live?", "Which city do I live in?", "What is my city?", "Where am I from?", "Do you know my city?",
           "In which city do I live?"],
          "I will remember that you live in {}.", "You live in {}."),
    _Fact(lambda s: s.choice(JOBS) if s.chance(0.6) else s.word(),
          ["I work as a {}.", "I am a {} by profession.", "My job is {}.", "I earn my money as a {}."],
          ["What is my job?", "What do I do for work?", "Do you know my job?", "What is my profession?", "My job?",
           "What do I work as?"],
          "I will remember that your job is {}.", "Your job is {}."),
    _Fact(lambda s: s.name(),
          ["My dog is called {}.", "I have a dog named {}.", "My dog's name is {}.", "I have a dog called {}."],
          ["What is the name of my dog?", "What is my dog called?", "Do you remember my dog's name?", "What's my dog's name?"],
          "I will remember that your dog is called {}.", "Your dog is called {}."),
    _Fact(lambda s: s.name(),
          ["My cat is called {}.", "I have a cat named {}.", "My cat's name is {}.", "I have a cat called {}."],
          ["What is the name of my cat?", "How is my cat called?", "Do you remember my cat's name?", "What's my cat's name?"],
          "I will remember that your cat is called {}.", "Your cat is called {}."),
    _Fact(lambda s: str(s.integer(5, 99)),
          ["I am {} years old.", "My age is {}.", "I'm {} years old.", "I am {}."],
          ["How old am I?", "What is my age?", "Do you know how old I am?", "My age?", "Tell me my age."],
          "I will remember that you are {} years old.", "You are {} years old."),
    _Fact(lambda s: s.choice(FOODS) if s.chance(0.6) else s.word(),
          ["I like to eat {}.", "My favorite food is {}.", "The food I like most is {}.", "I love to eat {}."],
          ["What is my favorite food?", "What do I like to eat?", "Which food do I like?", "What food do I like most?"],
          "I will remember that your favorite food is {}.", "Your favorite food is {}."),
    _Fact(lambda s: str(s.number()),
          ["My favorite number is {}.", "My lucky number is {}.", "The number I like is {}."],
          ["What is my favorite number?", "What is my lucky number?", "Which number do I like?", "My number?"],
          "I will remember that your number is {}.", "Your number is {}."),
    _Fact(lambda s: s.code(),
          ["The password is {}.", "Remember the password: {}", "My password is {}.", "The secret code is {}.", "The code word is {}.",
           "Please remember this code: {}", "Remember the word {}.", "Remember: {}", "Keep this in mind: {}", "Note the code {}."],
          ["What is the password?", "What was the password?", "What is the secret code?", "What is the code?", "Which word was it?",
           "Tell me the password.", "What should you remember?", "What did I ask you to remember?", "What was the code word?",
           "Which word should you remember?"],
          "I will remember {}.", "It is {}."),
]  # fmt: skip
_CODE = _FACTS[-1]


def _tell(source: Source, fact: _Fact, value: str) -> Turn:
    template = source.choice(fact.told)
    return Turn(source.noisy(template, 0.15).format(value), fact.noted.format(value), "The user tells me something.")


def _ask(source: Source, fact: _Fact, value: str) -> Turn:
    question = source.noisy(source.choice(fact.asked), 0.3)
    return Turn(question, fact.recalled.format(value), f"The user told me before: {value}.")


def _distraction(source: Source) -> list[Turn]:
    turns: list[Turn] = []
    while source.chance(0.3):
        turns += simple_question(source).turns
    return turns


def memory(source: Source) -> Dialogue:
    facts = source.sample(_FACTS, source.choice([1, 1, 2, 2, 3]))
    values = [fact.value(source) for fact in facts]
    turns: list[Turn] = []
    told = list(zip(facts, values))
    if len(told) > 1 and source.chance(0.3) and _CODE not in facts[:2]:
        both = " ".join(source.choice(fact.told).format(value) for fact, value in told[:2])
        if source.chance(0.4):
            both = both.replace(". ", " and ", 1)
        turns.append(Turn(both, facts[0].noted.format(values[0]), "The user tells me two things."))
        told = told[2:]
    for fact, value in told:
        turns.append(_tell(source, fact, value))
        turns += _distraction(source)
    if source.chance(0.12):  # The last word counts.
        values[0] = facts[0].value(source)
        correction = source.choice(["No wait, ", "Sorry, ", "Actually, ", "I was wrong. ", "Correction: "])
        text = source.choice(facts[0].told).format(values[0])
        turns.append(Turn(correction + text, facts[0].noted.format(values[0]), "The user corrects something."))
    asked = list(zip(facts, values))
    source.rng.shuffle(asked)
    for fact, value in asked[: source.choice([1, 1, 2, 3])]:
        turns.append(_ask(source, fact, value))
        turns += _distraction(source)
    if source.chance(0.2) and not source.held_out:
        missing = source.choice([fact for fact in _FACTS if fact not in facts])
        turns.append(Turn(source.noisy(source.choice(missing.asked)), NOT_TOLD, "The user has not told me that."))
    elif source.held_out:
        turns.append(_ask(source, *asked[0]))
    return Dialogue("memory", tuple(turns))


def not_told(source: Source) -> Dialogue:
    fact = source.choice(_FACTS)
    question = source.noisy(source.choice(fact.asked))
    dialogue = single("memory: not told", question, NOT_TOLD, "The user has not told me that.")
    if source.chance(0.5):
        other = source.choice([one for one in _FACTS if one is not fact])
        before = Dialogue("memory", (_tell(source, other, other.value(source)),))
        return dialogue.after(before)
    return dialogue
