"""Dialogues with tools: calls, results, several calls at once, and tools that do not fit."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace

from .arithmetic import add
from .chat import exchange, trivia
from .concepts import concept
from .copying import repeat
from .counting import count
from .dialogue import Dialogue, Turn
from .memory import memory
from .source import Source
from .stories import story
from .system_prompts import plain_prompt
from .tool_requests import Request, Tool, request
from .toolkit import toolkit_question

NO_TOOL = "I have no tool for that."


def schema(source: Source, tool: Tool) -> dict:
    """The definition of a tool as clients send it. Details differ between clients."""
    parameters: dict = {"type": "object", "properties": tool.properties}
    if source.chance(0.8):
        parameters["required"] = [name for name in tool.properties if name not in tool.optional]
    if source.chance(0.12):
        parameters["additionalProperties"] = False
    if source.chance(0.1):  # The order of other libraries.
        parameters = dict(sorted(parameters.items()))
    if source.chance(0.05):
        parameters["$schema"] = "http://json-schema.org/draft-07/schema#"
    function: dict = {"name": tool.name}
    if source.chance(0.94):
        function["description"] = tool.description
    function["parameters"] = parameters
    return {"type": "function", "function": function}


def call_text(calls: tuple[tuple[Tool, dict], ...]) -> str:
    parts = []
    for tool, arguments in calls:
        call = json.dumps({"name": tool.name, "arguments": arguments}, ensure_ascii=False)
        parts.append(f"<tool_call>\n{call}\n</tool_call>")
    return "\n".join(parts)


def _is_like(tool: Tool, others: Iterable[Tool]) -> bool:
    """Whether a tool could be meant by a request for one of the others."""
    words = _split_words(tool.name) - _COMMON_WORDS
    return any(words & _split_words(other.name) or tool.description == other.description for other in others)


def _shuffled(source: Source, wanted: Request, count: int) -> list[Tool]:
    """The tools of a request and `count` others, in any order. Relatives come first: they are near misses."""
    called = {tool.name: tool for tool, _ in wanted.calls}
    relatives = list(wanted.relatives) if source.chance(0.7) else []
    others: dict[str, Tool] = {}
    while len(others) < count:
        if relatives:
            other = relatives.pop(0)
            if other.name in called or other.description in {tool.description for tool in called.values()}:
                continue
        else:
            other = request(source).calls[0][0]
            if _is_like(other, called.values()):
                continue
        others.setdefault(other.name, other)
    listed = [*called.values(), *others.values()]
    source.rng.shuffle(listed)
    return listed


def _value(source: Source) -> object:
    makers = [source.number, source.word, lambda: source.words(1, 3), source.name, source.code,
              lambda: source.choice(["sunny", "rainy", "cloudy", "ok", "done", "sent", "shipped"]), lambda: source.chance(0.5)]
    return source.choice(makers)()


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(_shown, value)) if isinstance(value, list) else str(value)


def _result(source: Source, arguments: dict) -> tuple[str, str]:
    """The result of a tool, and what it says in words."""
    kind = source.rng.random()
    if kind < 0.12:
        error = source.choice(["not found", "timeout", "access denied", f"unknown {source.word()}", "network error", source.words(2, 4)])
        return json.dumps({"error": error}), f"The tool reported an error: {error}."
    if kind < 0.3:
        value = source.choice([lambda: source.words(1, 6), lambda: str(source.number(10_000)), source.code,
                               lambda: f"{source.integer(0, 23):02}:{source.integer(0, 59):02}"])()
        if source.chance(0.3):
            value = value.capitalize()
        return (value if source.chance(0.6) else json.dumps(value)), f"Here is the result: {value}."
    if kind < 0.38:
        items = [source.choice([source.word, source.name])() for _ in range(source.integer(1, 4))]
        return json.dumps(items), f"Here is the result: {_shown(items)}."
    fields: dict = {}
    if arguments and source.chance(0.3):
        name = next(iter(arguments))
        fields[name] = arguments[name]
    keys = "temperature condition status result total price name id count time city text state value message date owner score sent".split()
    for _ in range(source.choice([1, 1, 2, 2, 3])):
        fields[source.choice(keys) if source.chance(0.85) else source.word()] = _value(source)
    text = json.dumps(fields, separators=(",", ":") if source.chance(0.4) else None)
    return text, "Here is the result: " + ", ".join(f"{name} is {_shown(value)}" for name, value in fields.items()) + "."


def _answer_turn(source: Source, wanted: Request) -> Turn:
    results = [_result(source, arguments) for _, arguments in wanted.calls]
    return Turn(tuple(text for text, _ in results), " ".join(said for _, said in results), "I have the result of the tool.")


def _call_turn(wanted: Request) -> Turn:
    names = " and ".join(dict.fromkeys(tool.name for tool, _ in wanted.calls))
    fits = "fit" if " and " in names else "fits"
    return Turn(wanted.text, call_text(wanted.calls), f"The tool {names} {fits}.")


def _system(source: Source) -> str | None:
    extra = ["You are a helpful assistant with tools.", "Use the tools if needed.", "Call a tool when it fits."]
    return source.choice([None, None, plain_prompt(source), source.choice(extra)])


def tool_call(
    source: Source,
    others: int | None = None,
    family: Callable[[Source], Request] | None = None,
    parallel: bool | None = None,
) -> Dialogue:
    """One request that needs a tool. `others` is the number of further tools, and `parallel` asks for two calls."""
    wanted = request(source, family)
    while parallel is not None and (len(wanted.calls) > 1) != parallel:
        wanted = request(source, family)
    tools = _shuffled(source, wanted, source.choice([0, 1, 1, 2, 2, 3, 4]) if others is None else others)
    definitions = tuple(schema(source, tool) for tool in tools)
    skill = "tool call" if len(wanted.calls) == 1 else "parallel tool calls"
    return Dialogue(skill, (_call_turn(wanted),), _system(source), definitions)


def tool_answer(source: Source) -> Dialogue:
    """A call, its result, and the answer to it."""
    wanted = request(source)
    tools = _shuffled(source, wanted, source.choice([0, 1, 2]))
    turns = (_call_turn(wanted), _answer_turn(source, wanted))
    return Dialogue("tool answer", turns, _system(source), tuple(schema(source, tool) for tool in tools))


def tool_conversation(source: Source) -> Dialogue:
    """Several requests with their results, with other talk between. The last turn is a call."""
    requests: list[Request] = []
    tools: dict[str, Tool] = {}
    for _ in range(source.choice([1, 2, 2, 3])):
        wanted = request(source)
        if any(_is_like(tool, tools.values()) for tool, _ in wanted.calls):
            continue
        requests.append(wanted)
        for tool in [*(tool for tool, _ in wanted.calls), *wanted.relatives[:1]]:
            tools.setdefault(tool.name, tool)
    turns: list[Turn] = []
    if len(requests) == 1 or source.chance(0.2):
        turns += source.choice([exchange, toolkit_question, concept, repeat])(source).turns
    for at, wanted in enumerate(requests):
        turns.append(_call_turn(wanted))
        if at < len(requests) - 1:
            turns.append(_answer_turn(source, wanted))
            if source.chance(0.25):
                turns += source.choice([exchange, exchange, toolkit_question, repeat])(source).turns
    listed = list(tools.values())
    source.rng.shuffle(listed)
    return Dialogue("tool call, later turn", tuple(turns), _system(source), tuple(schema(source, tool) for tool in listed))


_SEARCHES = {"search", "find", "query", "lookup", "look", "get"}
_CALCULATIONS = {"add", "sum", "number", "calculate"}


def tool_not_needed(source: Source) -> Dialogue:
    """Tools are offered, and the question needs none."""
    offered = [request(source).calls[0][0] for _ in range(source.choice([1, 1, 2, 3]))]
    tools = {tool.name: tool for tool in offered}
    kinds = [exchange, exchange, concept, toolkit_question, repeat, count, memory, story]
    words = _words(list(tools.values()))
    if not _SEARCHES & words:
        kinds.append(trivia)
    if not _CALCULATIONS & words:
        kinds.append(add)
    dialogue = source.choice(kinds)(source)
    definitions = tuple(schema(source, tool) for tool in tools.values())
    return replace(dialogue, skill="tool not needed", system=source.choice([None, plain_prompt(source)]), tools=definitions)


_ERRANDS = [
    "Send a {} to {}.", "Book a {} for me.", "Book a trip to {1}.", "Order a {}.", "Buy a {} for {}.", "Call {1} for me.",
    "Play {}.", "Play the song {}.", "Open the {}.", "Start the {}.", "Close the {}.", "Print the {}.", "Set an alarm for {}.",
    "Rent a {0} in {1}.", "Deploy the {}.", "Restart the {}.", "Pay the {}.", "Upload the {}.", "Reserve a {}.", "Take a photo of the {}.",
]


def tool_missing(source: Source) -> Dialogue:
    """Tools are offered, and none of them fits the request."""
    tools = {tool.name: tool for _ in range(source.choice([1, 1, 2, 3])) if (tool := request(source).calls[0][0])}
    text = _foreign_request(source, list(tools.values()))
    definitions = tuple(schema(source, tool) for tool in tools.values())
    return Dialogue("tool missing", (Turn(text, NO_TOOL, "No tool fits."),), _system(source), definitions)


def _foreign_request(source: Source, tools: list[Tool]) -> str:
    """A request that shares no word with the names and descriptions of the tools."""
    known = _words(tools) - _COMMON_WORDS
    while True:
        if source.chance(0.45):
            errand = source.choice(_ERRANDS).format(source.word(), source.name())
            text = errand if source.chance(0.5) else source.choice(["Please ", "Can you "]) + errand[0].lower() + errand[1:]
            related = set()
        else:
            wanted = request(source)
            text = wanted.text
            related = _words([tool for tool, _ in wanted.calls])
        if not (related | _split_words(text)) - _COMMON_WORDS & known:
            return text


def _words(tools: list[Tool]) -> set[str]:
    return _split_words(" ".join(f"{tool.name} {tool.description}" for tool in tools))


def _split_words(text: str) -> set[str]:
    """The words of a text in lower case, without a plural s. `getUser` and `get_user` are two words."""
    spaced = "".join(f" {char.lower()}" if char.isupper() else char if char.isalnum() else " " for char in text)
    return {word.rstrip("s") for word in spaced.split()}


_COMMON_WORDS = _split_words(
    "a the of an to get for two in by id is and some with given current returns one this tool can numbers number you me please what"
)
