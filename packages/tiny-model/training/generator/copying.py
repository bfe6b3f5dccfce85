"""Copying: repeat a text, spell a word, upper case, backwards."""

from .dialogue import Dialogue, single
from .source import Source

_REPEAT = [
    "Repeat after me: {}", "Repeat: {}", "Say: {}", "Echo: {}", "Please repeat: {}", "Please say: {}",
    "Repeat this: {}", "Copy this: {}", "Repeat exactly: {}", "Repeat the following words: {}", "Write the following: {}",
    "Echo this text: {}", "Say exactly this: {}", "Output only this: {}", 'Repeat after me "{}"',
    'Please repeat the words "{}"', 'Say "{}"', 'Can you repeat "{}"?', "Can you say: {}", "Print: {}", "Say {}",
    "Repeat {}", "Please say {}", "Please repeat this sentence: {}", "Repeat the sentence: {}", "Write: {}", "Type: {}",
    "Say the words: {}", "Now say: {}", "Reply with: {}", "Answer with exactly: {}", 'Respond with "{}"',
    "Repeat this text word by word: {}", "Echo back: {}", "Please echo this: {}", "Copy the text: {}", "repeat {}",
    "repeat after me: {}", "say {}", 'repeat "{}"', "Say this: {}", "Tell me this again: {}", "Give me back this text: {}",
]
_SPELL = [
    "Spell the word {}.", "Spell {}.", "How do you spell {}?", "Please spell {}.", "Can you spell {}?", 'Spell "{}".',
    "Spell out {}.", "Spell this word: {}", "How is {} spelled?", 'Spell the word "{}", please.', "spell {}",
    "Which letters are in {}?", "Give me the letters of {}.", "List the letters of {}.", "how do you write {}?",
    "Spell: {}", "Spell out the word {}", "Letter by letter: {}", "spell the word {}",
]
_UPPER = [
    "Write {} in upper case.", "Write {} in capital letters.", "Make {} upper case.", "Convert {} to upper case.",
    "Uppercase: {}", "What is {} in capital letters?", 'Turn "{}" into upper case.', "Put {} in capitals.",
    "Make this upper case: {}", "Uppercase the word {}", "Write this in capitals: {}", "{} in upper case, please",
    "uppercase {}", "Please capitalize all letters of {}.", 'What is "{}" in upper case?', "Shout {}",
]
_REVERSE = [
    "Reverse the word {}.", "Write {} backwards.", "Reverse {}.", "What is {} backwards?", "Reverse: {}",
    "Spell {} backwards.", "Turn {} around.", "Say {} backwards.", "Read {} from the end.", "{} backwards?",
]


def _text(source: Source) -> str:
    kind = source.rng.random()
    if kind < 0.55:
        text = source.words(1, 10)
    elif kind < 0.72:
        makers = [source.word, source.name, lambda: str(source.number()), source.code]
        text = " ".join(source.choice(makers)() for _ in range(source.integer(1, 8)))
    elif kind < 0.84:
        text = source.words(2, 8).capitalize() + source.choice([".", "!", "?"])
    elif kind < 0.93:
        text = ", ".join(source.word() for _ in range(source.integer(2, 6)))
        if source.chance(0.3):
            text = text.capitalize() + "."
    else:
        text = source.words(8, 20)
    if source.chance(0.2):
        text = " ".join(part.capitalize() if source.chance(0.3) else part for part in text.split(" "))
    if source.chance(0.15):
        opening = source.choice(["The", "A", "My", "This", "Our", "Hello", "I like the", "We need a", "It is a", "She has"])
        text = f"{opening} {text}"
    return text


def repeat(source: Source) -> Dialogue:
    text = _text(source)
    return single("repeat", source.choice(_REPEAT).format(text), text, "The user wants me to repeat a text.")


def spell(source: Source) -> Dialogue:
    word = source.word()
    if source.chance(0.15):
        word = word.capitalize()
    return single("spell", source.choice(_SPELL).format(word), "-".join(word), "The user wants the letters of a word.")


def upper_case(source: Source) -> Dialogue:
    text = source.words(1, 2) if source.chance(0.3) else source.word()
    return single("upper case", source.choice(_UPPER).format(text), text.upper(), "The user wants capital letters.")


def reverse(source: Source) -> Dialogue:
    word = source.word()
    while len(word) > 6:
        word = source.word()
    answer = f"{'-'.join(word)} backwards is {'-'.join(reversed(word))}"
    return single("reverse", source.choice(_REVERSE).format(word), answer, "The user wants the word backwards.")
