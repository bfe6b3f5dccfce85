"""What a generated dialogue consists of."""

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Turn:
    """A message of the user, or the results of tools, and the answer to it."""

    user: str | tuple[str, ...]
    """The text of the user. A tuple contains the results of tools, in the order of the calls."""
    answer: str
    thought: str | None = None
    """What the model writes between `<think>` and `</think>`, where thinking is on."""


@dataclass(frozen=True)
class Dialogue:
    skill: str
    turns: tuple[Turn, ...]
    system: str | None = None
    tools: tuple[dict, ...] = ()
    think: bool = False
    short: str | None = None
    """The answer in one word, for system prompts that ask for it."""

    def after(self, other: "Dialogue") -> "Dialogue":
        """This dialogue, with the turns of another one before it."""
        return replace(self, turns=other.turns + self.turns)


def single(skill: str, user: str, answer: str, thought: str | None = None, **more: object) -> Dialogue:
    """A dialogue of one turn."""
    return Dialogue(skill, (Turn(user, answer, thought),), **more)
