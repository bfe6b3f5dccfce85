"""The shares of the skills, and how dialogues are combined."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from . import arithmetic, chat, concepts, context, copying, counting, extraction, facts, memory, stories, system_prompts, tools
from .dialogue import Dialogue
from .source import Source
from .toolkit import toolkit_question

Skill = Callable[[Source], Dialogue]

SHARES: list[tuple[Skill, float]] = [
    (toolkit_question, 14), (concepts.concept, 7), (chat.exchange, 6), (chat.unknown, 4.5),
    (copying.repeat, 8), (copying.spell, 9), (copying.upper_case, 5), (copying.reverse, 3.5), (counting.count, 4.5),
    (arithmetic.add, 9), (arithmetic.subtract, 9), (arithmetic.multiply, 5), (arithmetic.out_of_range, 1.5),
    (facts.fact, 3), (facts.sentiment, 1.5),
    (system_prompts.one_word, 4), (system_prompts.json_answer, 4), (system_prompts.fixed_text, 4), (system_prompts.own_name, 2.5),
    (system_prompts.plain, 2), (memory.memory, 5), (memory.not_told, 2), (context.context_question, 8), (context.needle, 3),
    (extraction.extract, 5), (stories.story, 2), (tools.tool_call, 20), (tools.tool_answer, 5), (tools.tool_conversation, 5),
    (lambda source: tools.tool_call(source, parallel=True), 2), (tools.tool_not_needed, 3), (tools.tool_missing, 3),
]  # fmt: skip

_FOLLOWED: list[tuple[Skill, float]] = [
    (toolkit_question, 4), (concepts.concept, 3), (chat.exchange, 3), (chat.unknown, 2), (copying.repeat, 4), (copying.spell, 3),
    (copying.upper_case, 2), (copying.reverse, 1), (counting.count, 2), (arithmetic.add, 4), (arithmetic.subtract, 4),
    (arithmetic.multiply, 2), (facts.fact, 2), (facts.sentiment, 1),
]  # fmt: skip
_SIMPLE = {skill for skill, _ in _FOLLOWED}


def _draw(source: Source, shares: list[tuple[Skill, float]]) -> Skill:
    return source.rng.choices([skill for skill, _ in shares], [share for _, share in shares])[0]


def sample(source: Source) -> Dialogue:
    """A dialogue for training: of any skill, with further turns, a system prompt and thinking now and then."""
    while True:
        skill = _draw(source, SHARES)
        dialogue = skill(source)
        if skill in _SIMPLE:
            while source.chance(0.4):
                dialogue = _draw(source, _FOLLOWED)(source).after(dialogue)
            if source.chance(0.3):
                dialogue = replace(dialogue, system=system_prompts.plain_prompt(source))
        if not is_frozen(dialogue):
            thinks = source.chance(0.35 if skill in (arithmetic.add, arithmetic.subtract) else 0.2)
            return replace(dialogue, think=thinks)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _frozen_prompts() -> frozenset[str]:
    """The hand-written prompts of the evaluation that are one message. None of them may be trained."""
    path = Path(__file__).parent.parent / "evaluation" / "handwritten.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    asked = [[message for message in row["messages"] if message["role"] == "user"] for row in rows]
    # Shorter prompts, such as "Hello!", are part of every conversation.
    return frozenset(text for one in asked if len(one) == 1 and len((text := _plain(one[0]["content"])).split()) >= 4)


_FROZEN = _frozen_prompts()


def is_frozen(dialogue: Dialogue) -> bool:
    """Whether a turn is a hand-written prompt of the evaluation."""
    return any(isinstance(turn.user, str) and _plain(turn.user) in _FROZEN for turn in dialogue.turns)
