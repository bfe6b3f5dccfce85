"""The source of all random values of the dialogues, and the split between training and tests."""

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

from . import words

T = TypeVar("T")


def is_held_out(*key: object) -> bool:
    """Whether a value belongs to the tests: one in ten, decided by a hash, so that it never changes."""
    digest = hashlib.md5("|".join(map(str, key)).encode()).hexdigest()
    return int(digest[:8], 16) % 10 == 0


class Source:
    """Random values with a seed.

    With `held_out`, made-up words, number pairs and wordings are those that training never uses.
    `pieces` are the letter tokens of the vocabulary, which become words now and then, so that each is copied.
    """

    def __init__(self, seed: int, held_out: bool = False, pieces: Sequence[str] = (), only_known: bool = False):
        self.rng = random.Random(seed)
        self.held_out = held_out
        self.pieces = pieces
        self.only_known = only_known

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def choice(self, options: Sequence[T]) -> T:
        return self.rng.choice(options)

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        return self.rng.sample(options, count)

    def integer(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def fits(self, *key: object) -> bool:
        """Whether this source may use a value: tests use held-out values, training uses the others."""
        return is_held_out(*key) == self.held_out

    def made_up(self) -> str:
        while True:
            word = words.made_up_word(self.rng)
            if 3 <= len(word) <= 11 and self.fits("word", word):
                return word

    def word(self) -> str:
        kind = self.rng.random()
        if kind < 0.5 or self.only_known:
            return self.choice(words.COMMON)
        if kind < 0.65:
            word = words.derived_word(self.rng)
            return word if len(word) <= 12 else self.choice(words.COMMON)
        if kind < 0.77 and self.pieces:
            word = "".join(self.choice(self.pieces) for _ in range(self.choice([1, 1, 2])))
            if 3 <= len(word) <= 12:
                return word
        return self.made_up()

    def words(self, low: int, high: int) -> str:
        return " ".join(self.word() for _ in range(self.integer(low, high)))

    def name(self) -> str:
        return self.choice(words.NAMES) if self.chance(0.6) or self.only_known else self.word().capitalize()

    def city(self) -> str:
        return self.choice(words.CITIES) if self.chance(0.6) or self.only_known else self.word().capitalize()

    def number(self, high: int = 1000) -> int:
        return self.integer(0, self.choice([20, 100, high]))

    def code(self) -> str:
        kind = self.rng.random()
        if kind < 0.35:
            return str(self.integer(10, 99_999))
        if kind < 0.6:
            letters = "".join(self.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(self.integer(1, 3)))
            return f"{letters}-{self.integer(1, 9_999)}"
        if kind < 0.75:
            return self.word() + str(self.integer(1, 99))
        return self.word()

    def noisy(self, question: str, probability: float = 0.4) -> str:
        """Changes case, punctuation and politeness as people do who type fast.

        Values would change, too, so pass a template and fill in its values afterwards.
        """
        if not question or not self.chance(probability):
            return question
        first_lower = question[0].lower() + question[1:]
        bare = question.rstrip("?.! ")
        kind = self.rng.random()
        if kind < 0.2:
            return first_lower
        if kind < 0.34:
            return bare
        if kind < 0.46:
            return first_lower.rstrip("?.! ")
        if kind < 0.58:
            return question.lower()
        if kind < 0.7:
            opening = ["Please: ", "Hi! ", "Hello, ", "Hey, ", "Ok, ", "So, ", "Question: ", "Well, ", "Hi, ", "Ok so "]
            return self.choice(opening) + (question if self.chance(0.5) else first_lower)
        if kind < 0.8:
            return bare + self.choice([" please", ", please?", " pls", " thanks", "? Thanks.", ", thank you", " now?"])
        if kind < 0.9:
            return bare + self.choice(["?", ".", "!", "??", " ?", "...", " - ?"])
        return self._typo(question)

    def _typo(self, text: str) -> str:
        """Drops or swaps one letter inside a word, except in templates."""
        if "{" in text:
            return text
        spots = [i for i in range(1, len(text) - 2) if text[i - 1 : i + 3].isalpha()]
        if not spots:
            return text
        at = self.choice(spots)
        if self.chance(0.5):
            return text[:at] + text[at + 1 :]
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
