"""A byte-level BPE tokenizer that llama.cpp reproduces: `tokenizer.ggml.model` gpt2, `tokenizer.ggml.pre` qwen2."""

import json
from pathlib import Path

import regex

from .render import TOOLS_CLOSE, TOOLS_OPEN

VOCABULARY_SIZE = 1536

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKS = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>", "<tools>", "</tools>"]
# Fixed texts of the chat template. llama.cpp finds them in any text, so that a tool takes few tokens.
FIXED_TEXTS = [
    TOOLS_OPEN,
    TOOLS_CLOSE,
    '{"type": "function", "function": {"name": "',
    '", "parameters": {"type": "object", "properties": {"',
]
SPECIAL = CONTROL + MARKS + FIXED_TEXTS
END = SPECIAL.index("<|im_end|>")

_PIECES = regex.compile(
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _byte_characters() -> dict[int, str]:
    """GPT-2's printable character for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{byte: chr(byte) for byte in printable}, **{byte: chr(256 + at) for at, byte in enumerate(others)}}


CHARACTER_OF_BYTE = _byte_characters()
BYTE_OF_CHARACTER = {character: byte for byte, character in CHARACTER_OF_BYTE.items()}
SPACE = CHARACTER_OF_BYTE[32]


def to_characters(text: str) -> list[str]:
    return [CHARACTER_OF_BYTE[byte] for byte in text.encode()]


def split(text: str) -> list[str]:
    """Splits a text as the pre-tokenizer qwen2 does: each digit alone, letters apart from punctuation."""
    return _PIECES.findall(text)


def _pattern(texts: list[str]) -> regex.Pattern:
    # llama.cpp cuts out the longest special tokens first.
    return regex.compile("|".join(regex.escape(text) for text in sorted(texts, key=len, reverse=True)))


class Tokenizer:
    def __init__(self, merges: list[tuple[str, str]]):
        self.merges = merges
        self.vocabulary = SPECIAL + [CHARACTER_OF_BYTE[byte] for byte in range(256)] + [a + b for a, b in merges]
        if len(set(self.vocabulary)) != len(self.vocabulary):
            raise ValueError("two merges make the same token")
        self._ids = {token: at for at, token in enumerate(self.vocabulary)}
        self._ranks = {merge: at for at, merge in enumerate(merges)}
        self._known: dict[str, list[int]] = {}
        self._special = _pattern(SPECIAL)
        self._special_without_texts = _pattern(CONTROL + MARKS)

    @staticmethod
    def load(path: Path) -> "Tokenizer":
        return Tokenizer([tuple(merge) for merge in json.loads(path.read_text())])

    def letter_tokens(self) -> list[str]:
        """Tokens of lower-case letters, each of which should be copied in training."""
        return [a + b for a, b in self.merges if (a + b).isascii() and (a + b).isalpha() and (a + b).islower()]

    def encode(self, text: str, fixed_texts: bool = True) -> list[int]:
        """Encodes a text. Without `fixed_texts`, the texts of the template are spelled out."""
        ids: list[int] = []
        at = 0
        for match in (self._special if fixed_texts else self._special_without_texts).finditer(text):
            ids += self._encode_plain(text[at : match.start()])
            ids.append(self._ids[match.group()])
            at = match.end()
        return ids + self._encode_plain(text[at:])

    def decode(self, ids: list[int]) -> str:
        data = bytearray()
        for each in ids:
            if each < len(SPECIAL):
                data += SPECIAL[each].encode()
            else:
                data += bytes(BYTE_OF_CHARACTER[character] for character in self.vocabulary[each])
        return data.decode("utf-8", "replace")

    def _encode_plain(self, text: str) -> list[int]:
        return [each for piece in split(text) for each in self._encode_piece(piece)]

    def _encode_piece(self, piece: str) -> list[int]:
        known = self._known.get(piece)
        if known is not None:
            return known
        parts = to_characters(piece)
        while len(parts) > 1:
            rank, at = min((self._ranks.get(pair, len(self._ranks)), at) for at, pair in enumerate(zip(parts, parts[1:])))
            if rank == len(self._ranks):
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        ids = [self._ids[part] for part in parts]
        if len(self._known) < 300_000:
            self._known[piece] = ids
        return ids
