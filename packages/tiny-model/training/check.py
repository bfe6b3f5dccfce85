"""Checks what the generator makes, in about ten seconds: `python -m training.check`. Run it after each change of the generator.

- The Python renderer and the chat template make the same text.
- Tool calls fit the schemas of the tools that are offered.
- No hand-written prompt of the evaluation is generated.
- Names of packages, functions, flags and routes in answers about the toolkit occur in README.md or docs/.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from .evaluation.generated import questions
from .evaluation.handwritten import handwritten_questions, template, tool_calls
from .generator.dialogue import Dialogue
from .generator.mixture import is_frozen, sample
from .generator.source import Source
from .generator.toolkit_topics import TOPICS
from .render import render

_DIALOGUES = 20_000
_REPOSITORY = Path(__file__).parents[3]
_KINDS = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "array": list}


def _messages(dialogue: Dialogue) -> Iterator[dict]:
    if dialogue.system:
        yield {"role": "system", "content": dialogue.system}
    for turn in dialogue.turns:
        if isinstance(turn.user, tuple):
            yield from ({"role": "tool", "content": result} for result in turn.user)
        else:
            yield {"role": "user", "content": turn.user}
        calls = tool_calls(turn.answer)
        if calls:
            yield {"role": "assistant", "content": "", "tool_calls": [{"function": call} for call in calls]}
        else:
            yield {"role": "assistant", "content": turn.answer}


def _check_rendering(dialogue: Dialogue) -> None:
    expected = template().render(messages=list(_messages(dialogue)), tools=list(dialogue.tools))
    rendered = "".join(text for text, _ in render(replace(dialogue, think=False)))
    if rendered != expected:
        raise SystemExit(f"rendered differently:\n{rendered!r}\n{expected!r}")


def _check_calls(dialogue: Dialogue) -> None:
    parameters = {tool["function"]["name"]: tool["function"]["parameters"] for tool in dialogue.tools}
    for turn in dialogue.turns:
        for call in tool_calls(turn.answer) or []:
            if call["name"] not in parameters:
                raise SystemExit(f"called a tool that is not offered: {call}")
            schema, arguments = parameters[call["name"]], call["arguments"]
            missing = set(schema.get("required", [])) - set(arguments)
            wrong = [
                name for name, value in arguments.items()
                if name not in schema["properties"] or not isinstance(value, _KINDS[schema["properties"][name]["type"]])
            ]  # fmt: skip
            if missing or wrong:
                raise SystemExit(f"wrong arguments: {call}, schema {json.dumps(schema)}")


def _check_answers() -> None:
    """An answer that names something which the documentation does not know is wrong or out of date."""
    pages = [_REPOSITORY / "README.md", *(_REPOSITORY / "docs").rglob("*.md")]
    documentation = "\n".join(page.read_text() for page in pages)
    name = re.compile(r"@modelmount/[\w/-]+|--[a-z][\w-]*|\b[a-z]+[A-Z]\w*|(?<![\w.])/[a-z]\w*")
    unknown = sorted({each for topic in TOPICS for each in name.findall(topic.answer) if each not in documentation})
    if unknown:
        raise SystemExit(f"toolkit_topics.py: not in README.md or docs/: {', '.join(unknown)}")


def main() -> None:
    _check_answers()
    source = Source(5)
    skills: Counter[str] = Counter()
    for _ in range(_DIALOGUES):
        dialogue = sample(source)
        skills[dialogue.skill] += 1
        _check_calls(dialogue)
        if is_frozen(dialogue):
            raise SystemExit(f"generated a hand-written prompt: {dialogue}")
        if skills[dialogue.skill] <= 100:
            _check_rendering(dialogue)
    for skill, number in skills.most_common():
        print(f"{100 * number / _DIALOGUES:5.1f} %  {skill}")
    print(f"{len(list(handwritten_questions()))} hand-written prompts, {len(list(questions(60, 4242)))} generated ones, {len(TOPICS)} topics")


if __name__ == "__main__":
    main()
