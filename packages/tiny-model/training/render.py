"""Renders dialogues as the chat template does, and says which parts the model learns to write."""

import json
from pathlib import Path

from .generator.dialogue import Dialogue

TEMPLATE = (Path(__file__).parent / "template.jinja").read_text()

TOOLS_OPEN = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
TOOLS_CLOSE = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)

Piece = tuple[str, bool]
"""A text, and whether the model writes it."""


def render(dialogue: Dialogue, compact: bool = False, prompt_only: bool = False) -> list[Piece]:
    """Returns the pieces of a dialogue.

    `compact` writes tools without spaces, as some clients do. `prompt_only` ends where the last answer begins.
    """
    pieces: list[Piece] = []
    separators = (",", ":") if compact else None
    if dialogue.tools:
        opening = f"{dialogue.system}\n\n" if dialogue.system else ""
        listed = "".join("\n" + json.dumps(tool, ensure_ascii=False, separators=separators) for tool in dialogue.tools)
        pieces.append((f"<|im_start|>system\n{opening}{TOOLS_OPEN}{listed}{TOOLS_CLOSE}<|im_end|>\n", False))
    elif dialogue.system:
        pieces.append((f"<|im_start|>system\n{dialogue.system}<|im_end|>\n", False))
    for turn in dialogue.turns:
        is_last = turn is dialogue.turns[-1]
        user = turn.user
        if isinstance(user, tuple):
            user = "\n".join(f"<tool_response>\n{result}\n</tool_response>" for result in user)
        pieces.append((f"<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n", False))
        # The template leaves out the thoughts of earlier turns.
        thinks = dialogue.think and is_last
        if thinks:
            pieces.append(("<think>\n", False))
        if is_last and prompt_only:
            return pieces
        if thinks:
            pieces.append((f"{turn.thought or 'This is simple.'}\n</think>\n\n", True))
        pieces.append((f"{turn.answer}<|im_end|>", True))
        pieces.append(("\n", False))
    return pieces


def prompt(dialogue: Dialogue) -> str:
    return "".join(text for text, _ in render(dialogue, prompt_only=True))
