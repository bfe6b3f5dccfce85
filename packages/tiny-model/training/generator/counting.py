"""Counting, weekdays, months and the alphabet."""

import string

from .dialogue import Dialogue, single
from .source import Source
from .words import DAYS, MONTHS

_UP = [
    "Count from {} to {}.", "Count {} to {}.", "Please count from {} to {}.", "Can you count from {} to {}?",
    "Write the numbers from {} to {}.", "Say the numbers {} to {}.", "List the numbers from {} to {}.",
    "Give me all numbers from {} to {}.", "numbers from {} to {}", "Start at {} and count to {}.",
]
_TO = ["Count to {}.", "Can you count to {}?", "Please count to {}.", "Count up to {}."]
_DOWN = ["Count down from {}.", "Count backwards from {}.", "Count down from {} to 1.", "A countdown from {}, please."]
_LISTS = [
    (["List the days of the week.", "What are the days of the week?", "Name the days of the week.",
      "Which days does a week have?", "Tell me all days of the week.", "days of the week", "Name all weekdays.",
      "List all days.", "The days of a week?"], ", ".join(DAYS), "A week has seven days."),
    (["List the months.", "What are the months of the year?", "Name the months of the year.", "Tell me all months.",
      "List the months of the year.", "Name all twelve months.", "Which months does a year have?", "all months please"],
     ", ".join(MONTHS), "A year has twelve months."),
    (["Say the alphabet.", "List the letters of the alphabet.", "What is the alphabet?", "Write the alphabet."],
     " ".join(string.ascii_lowercase), "There are 26 letters."),
]
_AFTER = ["What {} comes after {}?", "Which {} comes after {}?", "Which {} follows {}?", "What is the {} after {}?",
          "Which {} is next after {}?", "What {} is after {}?", "the {} after {}?"]
_BEFORE = ["What {} comes before {}?", "Which {} is before {}?", "Which {} comes before {}?", "What is the {} before {}?",
           "the {} before {}?"]


def count(source: Source) -> Dialogue:
    kind = source.rng.random()
    if kind < 0.4:
        low = 1 if source.chance(0.7) else source.integer(2, 40)
        high = source.integer(low + 1, low + 24)
        question = source.noisy(source.choice(_UP), 0.2).format(low, high)
        return single("count", question, _numbers(low, high), f"Start at {low} and stop at {high}.")
    if kind < 0.5:
        high = source.integer(2, 25)
        return single("count", source.noisy(source.choice(_TO), 0.2).format(high), _numbers(1, high),
                      f"Start at 1 and stop at {high}.")
    if kind < 0.6:
        high = source.integer(3, 20)
        return single("count", source.choice(_DOWN).format(high), ", ".join(map(str, range(high, 0, -1))),
                      f"Start at {high} and go down.")
    if kind < 0.78:
        questions, answer, thought = source.choice(_LISTS)
        return single("count", source.noisy(source.choice(questions)), answer, thought)
    items, name = source.choice([(DAYS, "day"), (MONTHS, "month")])
    at = source.integer(0, len(items) - 1)
    if source.chance(0.5):
        after = items[(at + 1) % len(items)]
        question = source.noisy(source.choice(_AFTER)).format(name, items[at])
        return single("count", question, f"{after}.", f"After {items[at]} comes {after}.", short=after)
    question = source.noisy(source.choice(_BEFORE)).format(name, items[at])
    return single("count", question, f"{items[at - 1]}.", f"Before {items[at]} comes {items[at - 1]}.", short=items[at - 1])


def _numbers(low: int, high: int) -> str:
    return ", ".join(map(str, range(low, high + 1)))
