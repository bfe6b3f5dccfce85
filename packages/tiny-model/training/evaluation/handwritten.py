"""The frozen hand-written prompts. They were written before the generator, which excludes them: change none of them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2

from ..render import TEMPLATE


@dataclass(frozen=True)
class HandwrittenQuestion:
    id: int
    category: str
    prompt: str
    pattern: re.Pattern | None
    calls: list[dict] | None


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@cache
def template() -> jinja2.Template:
    """The chat template, with the settings of its usual readers."""
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = _to_json
    return environment.from_string(TEMPLATE)


def handwritten_questions() -> Iterator[HandwrittenQuestion]:
    path = Path(__file__).parent / "handwritten.jsonl"
    for line in path.read_text().splitlines():
        row = json.loads(line)
        prompt = template().render(
            messages=row["messages"], tools=row.get("tools"), enable_thinking=row.get("think", False), add_generation_prompt=True
        )
        flags = 0 if row.get("matchCase") else re.IGNORECASE
        pattern = re.compile(row["expect"], flags) if "expect" in row else None
        yield HandwrittenQuestion(row["id"], row["category"], prompt, pattern, row.get("calls"))


def is_right(question: HandwrittenQuestion, answer: str) -> bool:
    matches = question.pattern is None or question.pattern.search(answer.strip()) is not None
    return matches and (question.calls is None or tool_calls(answer) == question.calls)


def tool_calls(answer: str) -> list[dict] | None:
    """The tool calls of an answer, or None if one is no JSON."""
    try:
        return [json.loads(text) for text in re.findall(r"<tool_call>\n(.*?)\n</tool_call>", answer, re.DOTALL)]
    except json.JSONDecodeError:
        return None
