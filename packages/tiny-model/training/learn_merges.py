"""Learns the merges of the tokenizer from generated dialogues: `python -m training.learn_merges`.

Merges are restricted, so that a word has the same tokens everywhere and copying stays copying:
letters merge with letters (upper case only at the front), punctuation with punctuation, digits never, and `}` and `]`
never. A grammar ends after the arguments of a call, so no token may cover the end of a JSON value and what follows.
The last merges join a space with the most frequent words.
"""

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path

from .generator.mixture import sample
from .generator.source import Source
from .render import render
from .tokenizer import SPACE, SPECIAL, VOCABULARY_SIZE, BYTE_OF_CHARACTER, Tokenizer, split, to_characters

_SPACED_WORDS = 300
_LONGEST_TOKEN = 7  # letters: longer tokens are hard to spell
_SPECIAL_TEXTS = [text for text in SPECIAL if text not in ("<tools>", "</tools>")]


def _kind(character: str) -> str:
    byte = BYTE_OF_CHARACTER[character]
    text = chr(byte)
    if byte >= 128:
        return "other"
    if text.islower():
        return "lower"
    if text.isupper():
        return "upper"
    if text.isdigit():
        return "digit"
    return "space" if byte == 32 else "closing" if text in "}]" else "sign"


def may_merge(a: str, b: str) -> bool:
    first, second = {_kind(char) for char in a}, {_kind(char) for char in b}
    if second == {"lower"} and first <= {"lower", "upper"}:
        return len(a) + len(b) <= _LONGEST_TOKEN and (len(a) == 1 or _kind(a[-1]) == "lower")
    if first | second <= {"sign", "space"}:
        return "sign" in first | second or first == second
    return first == second == {"other"}


def _count_pieces(source: Source, dialogues: int) -> Counter[str]:
    pieces: Counter[str] = Counter()
    for _ in range(dialogues):
        text = "".join(part for part, _ in render(sample(source)))
        for special in sorted(_SPECIAL_TEXTS, key=len, reverse=True):
            text = text.replace(special, "\0")
        for part in text.split("\0"):
            pieces.update(split(part))
    return pieces


def _learn(pieces: dict[str, int], count: int) -> list[tuple[str, str]]:
    words = [(to_characters(piece), weight) for piece, weight in sorted(pieces.items())]
    weights: Counter[tuple[str, str]] = Counter()
    places: defaultdict[tuple[str, str], set[int]] = defaultdict(set)

    def note(at: int, sign: int) -> None:
        parts, weight = words[at]
        for pair in zip(parts, parts[1:]):
            if may_merge(*pair):
                weights[pair] += sign * weight
                places[pair].add(at)

    for at in range(len(words)):
        note(at, 1)
    merges: list[tuple[str, str]] = []
    made: set[str] = set()
    while len(merges) < count:
        pair = max(weights, key=lambda one: (weights[one], one))
        joined = pair[0] + pair[1]
        if joined in made:  # Another pair makes this token already.
            del weights[pair]
            continue
        merges.append(pair)
        made.add(joined)
        for at in sorted(places[pair]):
            note(at, -1)
            parts, weight = words[at]
            merged: list[str] = []
            for part in parts:
                if merged and (merged[-1], part) == pair:
                    merged[-1] = joined
                else:
                    merged.append(part)
            words[at] = (merged, weight)
            note(at, 1)
        weights.pop(pair, None)
    return merges


def learn_merges(dialogues: int = 25_000) -> list[tuple[str, str]]:
    count = VOCABULARY_SIZE - len(SPECIAL) - 256 - _SPACED_WORDS
    pieces = _count_pieces(Source(7), dialogues)
    # Damped, so that frequent words do not take all merges.
    merges = _learn({piece: int(number**0.75) + 1 for piece, number in pieces.items()}, count)
    tokens = {a + b for a, b in merges} | {"a", "I"}
    known = _count_pieces(Source(8, only_known=True), dialogues)
    spaced = [
        (word, number)
        for piece, number in known.items()
        if piece.startswith(" ") and (word := piece[1:]).isascii() and word.isalpha() and word in tokens
    ]
    if len(spaced) < _SPACED_WORDS:
        raise RuntimeError(f"only {len(spaced)} words are single tokens")
    spaced.sort(key=lambda one: (-one[1], one[0]))
    return merges + [(SPACE, word) for word, _ in spaced[:_SPACED_WORDS]]


def write_merges(run: Path, dialogues: int) -> None:
    """Writes merges.json into the folder of a run, and checks that the tokenizer loses nothing."""
    merges = learn_merges(dialogues)
    tokenizer = Tokenizer(merges)
    run.mkdir(parents=True, exist_ok=True)
    (run / "merges.json").write_text(json.dumps(merges, ensure_ascii=False))
    lengths: list[int] = []
    source = Source(9, pieces=tokenizer.letter_tokens())
    for _ in range(2_000):
        text = "".join(part for part, _ in render(sample(source)))
        ids = tokenizer.encode(text)
        if tokenizer.decode(ids) != text:
            raise RuntimeError(f"decoded another text: {text!r}")
        lengths.append(len(ids))
    print(f"{len(tokenizer.vocabulary)} tokens, {sum(lengths) / len(lengths):.0f} tokens per dialogue, at most {max(lengths)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, default=Path("training/run"))
    parser.add_argument("--dialogues", type=int, default=25_000)
    options = parser.parse_args()
    write_merges(options.run, options.dialogues)
