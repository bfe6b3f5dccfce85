"""Questions to the instructed model, and its answers. See `instructed-model.ts`."""

import os

INSTRUCTED = os.environ['INSTRUCTED_URL']
TINY = os.environ['TINY_URL']
CALL = 'call weather {"city":"Paris"}'
PARALLEL_CALLS = CALL + '\ncall weather {"city":"Rome"}'
RESULT = 'Results: rain in Paris'
PARALLEL_RESULTS = 'Results: rain in Paris | rain in Rome'


def greets(turn, text):
    return f'User message {turn}: {text}'


def weather(city: str) -> str:
    """Tells the weather."""
    return f'rain in {city}'


def equal(actual, expected):
    assert actual == expected, f'Got {actual!r}, expected {expected!r}.'
