"""Batches of generated dialogues, each of about the same number of tokens."""

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from .generator.context import long_needle
from .generator.dialogue import Dialogue
from .generator.mixture import sample
from .generator.source import Source
from .render import render
from .tokenizer import Tokenizer

BATCH_TOKENS = 2048
_LONGEST = 640
_DIALOGUES_AT_ONCE = 600
# Tokens of one batch each per 600 dialogues, which make about 40 batches, once long texts are trained.
_LONG_LENGTHS = [[1024, 1536, 2048], [2048, 3072, 4096], [4096, 4096, 6144]]
_LONG_WEIGHT = 4.0  # A long text has few tokens to learn.


@dataclass(frozen=True)
class Batch:
    ids: Tensor
    """[dialogues, tokens], padded with 0."""
    positions: Tensor
    """Where the next token is one to learn, as indices of the flattened hidden states."""
    targets: Tensor
    weight: float


Encoded = tuple[list[int], list[bool]]


class Batches:
    def __init__(self, tokenizer: Tokenizer, seed: int):
        self.tokenizer = tokenizer
        self.source = Source(seed, pieces=tokenizer.letter_tokens())
        self.rng = random.Random(seed + 1)
        self.with_long_texts = False
        self._ready: list[tuple[list[Encoded], float]] = []

    def next(self) -> Batch:
        if not self._ready:
            self._refill()
        dialogues, weight = self._ready.pop()
        return _to_batch(dialogues, weight)

    def _encode(self, dialogue: Dialogue) -> Encoded:
        ids: list[int] = []
        is_target: list[bool] = []
        fixed_texts = self.rng.random() < 0.85
        compact = not fixed_texts and self.rng.random() < 0.5
        for text, learned in render(dialogue, compact=compact):
            encoded = self.tokenizer.encode(text, fixed_texts)
            ids += encoded
            is_target += [learned] * len(encoded)
        return ids, is_target

    def _refill(self) -> None:
        """Sorts dialogues by length, so that a batch has little padding, and shuffles the batches."""
        dialogues = [one for _ in range(_DIALOGUES_AT_ONCE) if len((one := self._encode(sample(self.source)))[0]) <= _LONGEST]
        dialogues.sort(key=lambda one: len(one[0]) + self.rng.random() * 6)
        batch: list[Encoded] = []
        for one in dialogues:
            if (len(batch) + 1) * _rounded(len(one[0])) > BATCH_TOKENS:
                self._ready.append((batch, 1.0))
                batch = []
            batch.append(one)
        self._ready.append((batch, 1.0))
        if self.with_long_texts:
            self._ready += [(self._long_batch(self.rng.choice(lengths)), _LONG_WEIGHT) for lengths in _LONG_LENGTHS]
        self.rng.shuffle(self._ready)

    def _long_batch(self, tokens: int) -> list[Encoded]:
        batch: list[Encoded] = []
        while len(batch) < max(1, BATCH_TOKENS // tokens):
            encoded = self._encode(long_needle(self.source, int(tokens / 16 * self.rng.uniform(0.6, 1))))
            if len(encoded[0]) <= tokens:
                batch.append(encoded)
        return batch


def _rounded(length: int) -> int:
    return (length + 7) // 8 * 8


def _to_batch(dialogues: list[Encoded], weight: float) -> Batch:
    length = _rounded(max(len(ids) for ids, _ in dialogues))
    ids = torch.zeros(len(dialogues), length, dtype=torch.long)
    is_target = torch.zeros(len(dialogues), length, dtype=torch.bool)
    for row, (tokens, learned) in enumerate(dialogues):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        is_target[row, : len(tokens)] = torch.tensor(learned)
    rows, columns = is_target[:, 1:].nonzero(as_tuple=True)
    return Batch(ids, rows * length + columns, ids[rows, columns + 1], weight)
