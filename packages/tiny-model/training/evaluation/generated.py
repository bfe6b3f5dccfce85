"""Freshly generated prompts with held-out values, by category."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ..generator import arithmetic, chat, concepts, context, copying, counting, extraction, facts, memory, stories, system_prompts, tools
from ..generator.dialogue import Dialogue
from ..generator.source import Source
from ..generator.tool_requests import unseen
from ..generator.toolkit import toolkit_new_wording, toolkit_question

Skill = Callable[[Source], Dialogue]


@dataclass(frozen=True)
class Question:
    category: str
    dialogue: Dialogue
    """Its last answer is the wanted one."""
    is_free: bool = False
    """Whether a story of the right form is right, too."""


def _thinking(skill: Skill) -> Skill:
    return lambda source: replace(skill(source), think=True)


def _needle(tokens: int) -> Skill:
    return lambda source: context.needle(source, tokens // 16)


def _mixed(source: Source) -> Dialogue:
    skills = [concepts.concept, copying.repeat, memory.memory, context.context_question, facts.fact, toolkit_question]
    return source.choice(skills)(source)


# Category, skill, and the share of the number of prompts.
CATEGORIES: list[tuple[str, Skill, float]] = [
    ("toolkit: new combinations of known phrases", toolkit_question, 2),
    ("toolkit: new wording", toolkit_new_wording, 2),
    ("concepts: new templates", concepts.concept, 1),
    ("greetings, identity", chat.exchange, 1),
    ("unknown: says so", chat.unknown, 1),
    ("repeat", copying.repeat, 1),
    ("spell", copying.spell, 1),
    ("upper case", copying.upper_case, 1),
    ("reverse", copying.reverse, 1),
    ("count, days, months", counting.count, 1),
    ("addition: new pairs", arithmetic.add, 1),
    ("subtraction: new pairs", arithmetic.subtract, 1),
    ("multiplication table", arithmetic.multiply, 1),
    ("calculations out of range: says so", arithmetic.out_of_range, 1),
    ("facts", facts.fact, 1),
    ("sentiment", facts.sentiment, 1),
    ("system: one word", system_prompts.one_word, 1),
    ("system: JSON", system_prompts.json_answer, 1),
    ("system: start or end", system_prompts.fixed_text, 1),
    ("system: name", system_prompts.own_name, 1),
    ("memory", memory.memory, 1),
    ("memory: not told", memory.not_told, 1),
    ("context", context.context_question, 1),
    ("JSON extraction", extraction.extract, 1),
    ("needle, short text", context.needle, 1),
    ("needle, about 1000 tokens", _needle(1000), 0.25),
    ("needle, about 2000 tokens", _needle(2000), 0.25),
    ("needle, about 4000 tokens", _needle(4000), 0.25),
    ("tool call, 1 tool", lambda source: tools.tool_call(source, 0, parallel=False), 1),
    ("tool call, 2 to 5 tools", lambda source: tools.tool_call(source, source.integer(1, 4), parallel=False), 1),
    ("tool call, unseen tool, 1 tool", lambda source: tools.tool_call(source, 0, unseen), 1),
    ("tool call, unseen tool, 2 to 5 tools", lambda source: tools.tool_call(source, source.integer(1, 4), unseen), 1),
    ("tool call, later turn", tools.tool_conversation, 1),
    ("parallel tool calls", lambda source: tools.tool_call(source, parallel=True), 1),
    ("tool answer", tools.tool_answer, 1),
    ("tool not needed", tools.tool_not_needed, 1),
    ("tool missing", tools.tool_missing, 1),
    ("thinking: arithmetic", _thinking(arithmetic.add), 1),
    ("thinking: tool call", _thinking(lambda source: tools.tool_call(source, parallel=False)), 1),
    ("thinking: mixed", _thinking(_mixed), 1),
    ("story", stories.story, 1),
]  # fmt: skip


def questions(per_category: int, seed: int) -> Iterator[Question]:
    for at, (category, skill, share) in enumerate(CATEGORIES):
        source = Source(seed * 1000 + at, held_out=True)
        for _ in range(max(1, round(per_category * share))):
            dialogue = skill(source)
            yield Question(category, dialogue, dialogue.turns[-1].answer.count(" ") > 60)
