"""Tools, and requests that need one of them.

Each family returns several related tools, so that near misses can be offered together: reading and deleting a file,
the weather and the time of a city. One of them fits the request.
"""

from collections.abc import Callable
from dataclasses import dataclass

from .source import Source


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    properties: dict
    optional: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """What a user asks for, and the calls that answer it."""

    text: str
    calls: tuple[tuple[Tool, dict], ...]
    relatives: tuple[Tool, ...] = ()
    """Tools of the same family that do not fit."""


def property_of(kind: str, description: str | None = None, enum: list[str] | None = None) -> dict:
    schema: dict = {"type": kind}
    if description:
        schema["description"] = description
    if enum:
        schema["enum"] = enum
    return schema


def tool_name(source: Source, parts: list[str]) -> str:
    kind = source.rng.random()
    if kind < 0.7:
        return "_".join(parts)
    if kind < 0.9:
        return parts[0] + "".join(part.capitalize() for part in parts[1:])
    return "-".join(parts)


def _join(source: Source, items: list[str]) -> str:
    if len(items) == 1:
        return items[0]
    last = source.choice([" and ", " and ", ", ", " and also "])
    return ", ".join(items[:-1]) + last + items[-1]


# Topics of a place: words for the name, descriptions, questions.
_PLACE_TOPICS = [
    (["weather"], ["Get the weather", "Get the current weather for a city", "Returns the weather of a city", "Weather information",
                   "Look up the current weather"],
     ["What is the weather in {}?", "How is the weather in {}?", "Weather in {}?", "Tell me the weather in {}.", "Is it sunny in {}?",
      "What's the weather like in {}?", "Will it rain in {} today?", "weather {}", "Please check the weather for {}.", "Forecast for {}?",
      "I am in {}. What is the weather?", "Is it cold in {}?", "Is it warm in {}?", "Tell me if it rains in {}.", "Does it snow in {}?",
      "Do I need an umbrella in {}?", "How hot is it in {}?", "I want to know the weather in {}.", "What is it like outside in {}?"],
     "the weather in {}"),
    (["time"], ["Get the current time", "Get the current time in a city", "Returns the local time of a place", "Clock of a city"],
     ["What time is it in {}?", "What is the time in {}?", "Tell me the time in {}.", "How late is it in {}?", "current time in {}",
      "Time in {} please", "What does the clock say in {}?", "What's the local time in {}?"],
     "the time in {}"),
    (["population"], ["Get the population of a city", "Returns how many people live in a place"],
     ["How many people live in {}?", "What is the population of {}?", "Population of {}?", "How big is {}?"], "the population of {}"),
    (["hotels"], ["Find hotels in a city", "Search hotels", "Returns hotels of a place"],
     ["Find hotels in {}.", "Which hotels are in {}?", "I need a hotel in {}.", "Show me hotels in {}."], "hotels in {}"),
    (["news"], ["Get the news of a place", "Local news of a city"],
     ["What is new in {}?", "News from {}?", "Show me the news of {}.", "What happens in {}?"], "the news of {}"),
]


def place(source: Source) -> Request:
    parameter = source.choice(["city", "city", "location", "place", "town"])
    description = source.choice([None, "The city", "Name of the city", "City name, e.g. Paris", "The city and state, e.g. Boston, MA"])
    topics = source.sample(_PLACE_TOPICS, 3) if source.chance(0.6) else source.sample(_PLACE_TOPICS[:2], 2)
    tools = []
    for words, descriptions, _, _ in topics:
        prefix = source.choice([["get"], ["get", "current"], ["fetch"], ["find"], ["check"], [], ["lookup"]])
        tools.append(Tool(tool_name(source, prefix + words), source.choice(descriptions), {parameter: property_of("string", description)}))
    city = source.city()
    text = source.choice(topics[0][2])
    arguments = {parameter: city}
    if topics[0][0] == ["weather"] and source.chance(0.35):
        optional = source.chance(0.5)
        unit = property_of("string", None, ["celsius", "fahrenheit"])
        tools[0] = Tool(tools[0].name, tools[0].description, {**tools[0].properties, "unit": unit}, ("unit",) if optional else ())
        if not optional or source.chance(0.5):
            arguments["unit"] = source.choice(["celsius", "fahrenheit"])
            text = text.rstrip("?.") + f" in {arguments['unit']}" + text[len(text.rstrip("?.")) :]
    if source.chance(0.12):  # Parallel calls: two places, or two topics.
        if source.chance(0.6) and "unit" not in arguments:
            other = source.city()
            verb = source.choice(["What is {} and {}?", "Tell me {} and {}.", "{} and {}, please", "I need {} and {}.", "Get {} and {}."])
            second = source.choice([other, f"{topics[0][3].split()[-2]} {other}", topics[0][3].format(other)])
            text = verb.format(topics[0][3].format(city), second)
            return Request(text[0].upper() + text[1:], ((tools[0], arguments), (tools[0], {parameter: other})), tuple(tools[1:]))
        if "unit" not in arguments:
            other = source.choice([city, source.city()])
            frame = source.choice(["What is {} and {}?", "Tell me {} and {}.", "I need {} and {}.", "{} and {}, please.", "Get {} and {}."])
            text = frame.format(topics[0][3].format(city), topics[1][3].format(other))
            return Request(text[0].upper() + text[1:], ((tools[0], arguments), (tools[1], {parameter: other})), tuple(tools[2:]))
    return Request(source.noisy(text, 0.15).format(city), ((tools[0], arguments),), tuple(tools[1:]))


_OPERATIONS = [
    (["add"], ["Add two numbers", "Returns the sum of two numbers"],
     ["What is {} plus {}?", "Add {} and {}.", "What is {} + {}?", "Sum {} and {}.", "Calculate {} + {}", "Please add {} and {}."]),
    (["multiply"], ["Multiply two numbers", "Returns the product of two numbers"],
     ["What is {} times {}?", "Multiply {} by {}.", "What is {} * {}?", "Multiply {} and {}.", "{} x {}?"]),
    (["subtract"], ["Subtract two numbers", "Returns the difference of two numbers"],
     ["What is {} minus {}?", "Subtract: {} - {}", "What is {} - {}?"]),
    (["divide"], ["Divide two numbers", "Returns the quotient of two numbers"],
     ["What is {} divided by {}?", "Divide {} by {}.", "What is {} / {}?"]),
]


def calculator(source: Source) -> Request:
    names = source.choice([("a", "b"), ("x", "y"), ("first", "second"), ("num1", "num2"), ("left", "right")])
    kind = source.choice(["number", "integer"])
    tools = []
    operations = source.sample(_OPERATIONS, 3)
    for words, descriptions, _ in operations:
        name = tool_name(source, words + source.choice([[], ["numbers"]]))
        tools.append(Tool(name, source.choice(descriptions), {each: property_of(kind) for each in names}))

    def number() -> float:
        if kind == "number" and source.chance(0.15):
            return round(source.rng.uniform(0, 100), source.choice([1, 2]))
        return source.number(10_000)

    a, b = number(), number()
    text = source.choice(operations[0][2]).format(a, b)
    return Request(text, ((tools[0], {names[0]: a, names[1]: b}),), tuple(tools[1:]))


_RECORDS = "user customer product order item account page post invoice ticket booking article contact event record".split()
_RECORD_VERBS = {
    "get": (["Get {a}", "Load one {o}", "Returns the {o} with the given id", "Look up {a}", "Look up the status of {a}"],
            ["Get {o} {n}", "Show me {o} {n}.", "Where is {o} {n}?", "Load {o} number {n}.", "Fetch the {o} with id {n}.",
             "I want to see {o} {n}.", "What is the status of {o} {n}?", "Look up {o} {n}.", "What about {o} {n}?", "Status of {o} {n}?",
             "Check {o} {n} please.", "Where is my {o} {n}?", "Can you find {o} {n} for me?", "I need the details of {o} {n}."]),
    "delete": (["Delete {a}", "Removes the {o}", "Remove {a} by id"],
               ["Delete {o} {n}.", "Remove {o} {n}.", "Please delete {o} number {n}.", "Get rid of {o} {n}.", "Erase {o} {n}."]),
    "archive": (["Archive {a}", "Moves the {o} to the archive"], ["Archive {o} {n}.", "Move {o} {n} to the archive.", "Please archive {o} {n}."]),
    "cancel": (["Cancel {a}", "Cancels the {o}"], ["Cancel {o} {n}.", "Please cancel {o} {n}.", "I want to cancel {o} number {n}."]),
    "approve": (["Approve {a}"], ["Approve {o} {n}.", "Please approve {o} {n}.", "{o} {n} is fine, approve it."]),
}


def record(source: Source) -> Request:
    """A record by its id. The schema alone says whether the id is a number or a string."""
    noun = source.choice(_RECORDS) if source.chance(0.8) else source.word()
    verbs = source.sample(list(_RECORD_VERBS), 3)
    if source.chance(0.5):
        verbs = ["get"] + [verb for verb in verbs if verb != "get"][:2]
    parameter = source.choice(["id", f"{noun}_id", "number", f"{noun}Id", "key"])
    number = source.integer(1, 99_999)
    kind = source.choice(["integer", "string", "number"])
    value: int | str = number if kind != "string" else str(number)
    shown = str(number)
    if kind == "string" and source.chance(0.4):
        value = shown = source.code()
    article = source.choice([f"the {noun}", f"a {noun}"])
    description = source.choice([None, f"The {noun} id", f"Id of the {noun}", f"{noun.capitalize()} number"])
    tools = []
    for verb in verbs:
        words = source.choice([[verb, noun], [verb, noun], [noun, verb], [verb, noun, "by", "id"]])
        text = source.choice(_RECORD_VERBS[verb][0]).format(a=article, o=noun)
        tools.append(Tool(tool_name(source, words), text, {parameter: property_of(kind, description)}))
    if source.chance(0.12) and kind != "string":
        other = source.integer(1, 99_999)
        verb = source.choice(["Get", "Look up", "Show me"]) if verbs[0] == "get" else verbs[0].capitalize()
        text = f"{verb} the {noun}s {number} and {other}."
        return Request(text, ((tools[0], {parameter: number}), (tools[0], {parameter: other})), tuple(tools[1:]))
    text = source.choice(_RECORD_VERBS[verbs[0]][1]).format(o=noun, n=shown)
    return Request(text, ((tools[0], {parameter: value}),), tuple(tools[1:]))


_FILE_VERBS = {
    "read": (["Read a file", "Read a file from disk", "Returns the content of a file"],
             ["Read the file {}.", "Show me {}.", "Open the file {}.", "What is in {}?", "Print {}.", "Read {}", "Show me the content of {}"]),
    "delete": (["Delete a file", "Removes a file"], ["Delete the file {}.", "Remove {}.", "Please delete {}.", "Get rid of the file {}."]),
    "copy": (["Copy a file"], ["Copy the file {}.", "Make a copy of {}.", "Duplicate {}."]),
    "rename": (["Rename a file"], ["Rename {}.", "Give {} another name."]),
}


def file(source: Source) -> Request:
    def path() -> str:
        name = source.word() + source.choice([".txt", ".md", ".json", ".csv", ".log", ".yaml"])
        return f"{source.word()}/{name}" if source.chance(0.4) else name

    parameter = source.choice(["path", "file", "filename"])
    verbs = source.sample(list(_FILE_VERBS), 3)
    tools = [Tool(tool_name(source, [verb, "file"]), source.choice(_FILE_VERBS[verb][0]), {parameter: property_of("string")}) for verb in verbs]
    first = path()
    if source.chance(0.12):
        second = path()
        text = f"{verbs[0].capitalize()} the files {first} and {second}."
        return Request(text, ((tools[0], {parameter: first}), (tools[0], {parameter: second})), tuple(tools[1:]))
    return Request(source.choice(_FILE_VERBS[verbs[0]][1]).format(first), ((tools[0], {parameter: first}),), tuple(tools[1:]))


def message(source: Source) -> Request:
    to = source.name() if source.chance(0.6) else f"{source.word()}@{source.word()}.{source.choice(['com', 'org', 'example'])}"
    body = source.words(1, 6)
    a = source.choice(["to", "recipient", "email", "address", "person"])
    b = source.choice(["text", "message", "body", "content"])
    properties = {a: property_of("string"), b: property_of("string")}
    send = Tool(tool_name(source, source.choice([["send", "email"], ["send", "message"], ["send", "mail"], ["write", "email"], ["send", "sms"]])),
                source.choice(["Send a message", "Send an email to a person", "Sends a text message to someone", "Send an email"]), properties)
    others = [Tool(tool_name(source, ["list", "messages"]), "List the messages", {}),
              Tool(tool_name(source, ["delete", "message"]), "Delete a message", {"id": property_of("integer")}),
              Tool(tool_name(source, ["find", "contact"]), "Find a contact by name", {"name": property_of("string")})]
    text = source.choice(["Send a message to {} with the text {}", "Send an email to {}: {}", "Write to {}: {}", "Message {}: {}",
                          'Send {} the message "{}"', "Send an email to {} saying {}", "Send a message to {} that says {}", "Mail {}: {}",
                          "Tell {} this by mail: {}", 'Please send "{1}" to {0}', "Email {}: {}", "Write an email to {} that says {}"])
    return Request(text.format(to, body), ((send, {a: to, b: body}),), tuple(source.sample(others, 2)))


def search(source: Source) -> Request:
    where = source.choice(["web", "docs", "knowledge base", "documentation", "wiki", "manual", "notes", "archive", "database"])
    words = where.split()
    parameter = source.choice(["query", "q", "text", "question", "term", "keywords"])
    query = source.words(1, 5)
    tool = Tool(tool_name(source, source.choice([["search", *words], [*words, "search"], ["query", *words], ["search"], ["find", "in", *words]])),
                source.choice([f"Search the {where}", f"Look up something in the {where}", f"Find texts in the {where}", "Search for documents"]),
                {parameter: property_of("string", source.choice([None, "The search query"]))})
    text = source.choice(["Search for {}.", "Search the {w} for {}", "Please search: {}", "Find information about {}.", "Look up {}.",
                          'Look up "{}" in the {w}.', "Find {} in the {w}.", "What does the {w} say about {}?", "search {}",
                          'Please search the {w} for "{}".', "Can you search for {}?"])
    others = [Tool(tool_name(source, ["list", "pages"]), f"List the pages of the {where}", {}),
              Tool(tool_name(source, ["create", "page"]), f"Create a page in the {where}", {"title": property_of("string")})]
    return Request(text.format(query, w=where), ((tool, {parameter: query}),), tuple(others))


def create(source: Source) -> Request:
    """A note, a task, a ticket: a text, and for tickets a priority, tags or a flag."""
    noun = source.choice(["note", "task", "todo", "ticket", "issue", "bug", "report", "reminder"])
    title = source.words(1, 5)
    if source.chance(0.4):
        title = title.capitalize()
    parameter = source.choice(["title", "text", "summary", "subject", "content"])
    properties = {parameter: property_of("string")}
    arguments: dict = {parameter: title}
    verb = source.choice(["create", "add", "open", "new", "save"])
    text = source.choice([f"Create a {noun}: {title}", f"Add a {noun}: {title}", f'Create a {noun} called "{title}"', f"New {noun}: {title}",
                          f"Please create a {noun} with the title {title}", f"Make a {noun} that says {title}"])
    kind = source.rng.random()
    if kind < 0.35:
        levels = source.choice([["low", "medium", "high", "urgent"], ["low", "high"], ["low", "medium", "high"]])
        level = source.choice(levels)
        properties["priority"] = property_of("string", None, levels)
        arguments["priority"] = level
        text += source.choice([f" with {level} priority", f" and priority {level}", f", priority {level}", f" using priority {level}"])
    elif kind < 0.5:
        tags = [source.word() for _ in range(source.integer(1, 3))]
        properties["tags"] = {"type": "array", "items": {"type": "string"}}
        arguments["tags"] = tags
        text += f" with the tag{'s' if len(tags) > 1 else ''} " + (tags[0] if len(tags) == 1 else f"{', '.join(tags[:-1])} and {tags[-1]}")
    elif kind < 0.62:
        flag = source.choice(["private", "urgent", "done", "public"])
        value = source.chance(0.5)
        properties[flag] = property_of("boolean")
        arguments[flag] = value
        text += source.choice([f" and set {flag} to {str(value).lower()}", f" with {flag} {str(value).lower()}", f", {flag}: {str(value).lower()}"])
    tool = Tool(tool_name(source, [verb, noun]), source.choice([f"Create a {noun}", f"Save a new {noun}", f"Open a {noun}"]), properties)
    others = [Tool(tool_name(source, ["list", noun + "s"]), f"List all {noun}s", {}),
              Tool(tool_name(source, ["close", noun]), f"Close a {noun}", {"id": property_of("integer")})]
    return Request(text, ((tool, arguments),), tuple(others))


def home(source: Source) -> Request:
    room = source.choice("kitchen bedroom bathroom garage office hall garden cellar attic".split() + [source.word()])
    state = source.choice(["on", "off"])
    things = source.sample(["light", "heating", "music", "fan", "alarm"], 3)
    a, b = source.choice(["room", "place", "area"]), source.choice(["state", "status", "power"])
    tools = [Tool(tool_name(source, [source.choice(["set", "switch", "control"]), thing]), f"Switch the {thing} of a room on or off",
                  {a: property_of("string"), b: property_of("string", None, ["on", "off"])}) for thing in things]
    text = source.choice(["Turn {s} the {t} in the {r}.", "Switch the {r} {t} {s}.", "Turn {s} the {r} {t}.", "Turn the {t} {s} in the {r}.",
                          "{t} {s} in the {r}!", "Please switch {s} the {t} in the {r}.", "I want the {t} in the {r} {s}."])
    text = text.format(s=state, r=room, t=things[0])
    return Request(text[0].upper() + text[1:], ((tools[0], {a: room, b: state}),), tuple(tools[1:]))


def booking(source: Source) -> Request:
    where, people = source.name(), source.integer(1, 12)
    hour = source.choice([f"{source.integer(0, 23)}:{source.choice(['00', '15', '30', '45'])}", f"{source.integer(1, 12)} pm"])
    a, b, c = source.choice([("restaurant", "people", "time"), ("place", "guests", "time"), ("name", "party_size", "hour")])
    kind = source.choice(["integer", "integer", "string", "number"])
    tool = Tool(tool_name(source, source.choice([["book", "table"], ["reserve", "table"], ["make", "reservation"]])),
                source.choice(["Book a table in a restaurant", "Reserve a table"]),
                {a: property_of("string"), b: property_of(kind), c: property_of("string")})
    text = source.choice(["Book a table at {} for {} people at {}.", "Reserve a table at {} for {} at {}.",
                          "I need a table at {} for {} people at {}.", "A table for {1} at {0}, {2} please"]).format(where, people, hour)
    others = [Tool(tool_name(source, ["cancel", "booking"]), "Cancel a booking", {"id": property_of("integer")}),
              Tool(tool_name(source, ["find", "restaurant"]), "Find a restaurant in a city", {"city": property_of("string")})]
    return Request(text, ((tool, {a: where, b: people if kind != "string" else str(people), c: hour}),), tuple(others))


_CURRENCIES = ["USD", "EUR", "GBP", "JPY", "CHF", "SEK"]
_LANGUAGES = "French German Spanish Italian Dutch Polish Greek Turkish Japanese".split()


def conversion(source: Source) -> Request:
    if source.chance(0.5):
        amount = source.number()
        one, two = source.sample(_CURRENCIES, 2)
        a, b, c = source.choice([("amount", "from", "to"), ("value", "from_currency", "to_currency"), ("amount", "source", "target")])
        tool = Tool(tool_name(source, source.choice([["convert", "currency"], ["exchange"], ["convert"]])),
                    source.choice(["Convert an amount of money", "Convert between currencies"]),
                    {a: property_of("number"), b: property_of("string"), c: property_of("string")})
        text = source.choice(["Convert {} {} to {}.", "How much is {} {} in {}?", "Change {} {} into {}.", "{} {} in {}?"]).format(amount, one, two)
        return Request(text, ((tool, {a: amount, b: one, c: two}),))
    words, language = source.words(1, 4), source.choice(_LANGUAGES)
    a, b = source.choice(["text", "phrase"]), source.choice(["language", "target_language", "to", "target"])
    tool = Tool(tool_name(source, source.choice([["translate"], ["translate", "text"]])), source.choice(["Translate a text", "Translate text to another language"]),
                {a: property_of("string"), b: property_of("string", source.choice([None, "Target language"]))})
    text = source.choice(["Translate {} to {}.", 'Translate "{}" into {}.', "How do you say {} in {}?", "Please translate {} to {}"]).format(words, language)
    return Request(text, ((tool, {a: words, b: language}),))


def timer(source: Source) -> Request:
    count = source.integer(1, 120)
    parameter, unit = source.choice([("minutes", "minutes"), ("seconds", "seconds"), ("hours", "hours"), ("duration", "minutes")])
    kind = source.choice(["integer", "integer", "string"])
    set_it = Tool(tool_name(source, source.choice([["set", "timer"], ["start", "timer"], ["timer"]])), source.choice(["Set a timer", "Start a timer"]),
                  {parameter: property_of(kind, source.choice([None, "How long"]))})
    stop = Tool(tool_name(source, ["stop", "timer"]), "Stop the timer", {})
    text = source.choice(["Set a timer for {} {}.", "Start a timer of {} {}.", "Timer for {} {} please.", "Remind me in {} {}."]).format(count, unit)
    return Request(text, ((set_it, {parameter: count if kind != "string" else str(count)}),), (stop,))


_BARE = [
    (["get", "date"], "Get the date of today", ["What is the date today?", "Which day is today?", "What date is it?", "Tell me the date."]),
    (["list", "files"], "List all files", ["List all files.", "Which files are there?", "Show me the files."]),
    (["get", "user"], "Get the current user", ["Who is logged in?", "Show the current user.", "Which user is this?"]),
    (["get", "status"], "Get the server status", ["What is the server status?", "Is the server running?", "Show the status of the server."]),
    (["get", "news"], "Get the latest news", ["What is in the news?", "Show me the news.", "Any news?"]),
    (["random", "number"], "Get a random number", ["Give me a random number.", "Pick a random number.", "I need a random number."]),
    (["list", "customers"], "List all customers", ["Which customers are there?", "List the customers.", "Show all customers."]),
]


def bare(source: Source) -> Request:
    """Tools without arguments."""
    rows = source.sample(_BARE, 3)
    tools = [Tool(tool_name(source, words), description, {}) for words, description, _ in rows]
    return Request(source.noisy(source.choice(rows[0][2])), ((tools[0], {}),), tuple(tools[1:]))


_VERBS = "run start stop set make find check count show load order clean paint fix move send print test scan measure lock tune".split()
_PARAMETERS = "name id value text item size level count mode target user key title color speed width label amount".split()


def unseen(source: Source) -> Request:
    """Any tool: the request shares words with it, and the arguments are copied."""
    noun = [source.word()] + ([source.word()] if source.chance(0.3) else [])
    verbs = source.sample(_VERBS, 3)
    if source.chance(0.3):
        verbs[0] = source.word()
    properties: dict = {}
    arguments: dict = {}
    for _ in range(source.choice([0, 1, 1, 2, 2, 3])):
        parameter = source.choice(_PARAMETERS) if source.chance(0.7) else source.word()
        if parameter in properties:
            continue
        value: str | int = source.choice([source.word, source.name, lambda: source.words(2, 3), source.code])()
        kind = "string"
        if source.chance(0.5):  # The same number is a number or a string, as the schema says.
            number = source.number(10_000)
            kind = source.choice(["integer", "number", "string"])
            value = str(number) if kind == "string" else number
        properties[parameter] = property_of(kind)
        if source.chance(0.2):
            properties[parameter]["description"] = source.choice([f"The {parameter}", source.words(1, 3)])
        arguments[parameter] = value
    named = " ".join(noun)
    description = source.choice(["{v} the {n}", "{v} a {n}", "This tool can {l} the {n}", "{v} {n}", "Used to {l} the {n}"])
    tools = [Tool(tool_name(source, [verb, *noun]), description.format(v=verb.capitalize(), l=verb, n=named), properties) for verb in verbs]
    if source.chance(0.1):
        tools[0] = Tool(tools[0].name, source.words(2, 5).capitalize(), properties)
    verb = verbs[0]
    text = source.choice([f"{verb.capitalize()} the {named}", f"Please {verb} the {named}", f"{verb} {named}", f"Can you {verb} the {named}",
                          f"I want to {verb} the {named}", f"Use the tool {tools[0].name}", f"Call {tools[0].name}", f"Use {tools[0].name}",
                          f"Please call {tools[0].name}", f"Run {tools[0].name}", f"I need you to {verb} the {named}", f"use {tools[0].name}"])
    if len(arguments) == 1 and source.chance(0.4):
        value = next(iter(arguments.values()))
        text += source.choice([" for ", " with ", " "]) + (f'"{value}"' if source.chance(0.3) else str(value))
    elif arguments:
        separator = source.choice([" = ", " ", " ", "=", " is ", ": "])
        pairs = [f"{parameter}{separator}{value}" for parameter, value in arguments.items()]
        text += source.choice([" with ", " where ", " for ", " using ", ", "]) + source.choice([" and ", " and ", ", "]).join(pairs)
    text += source.choice([".", "", "!", "?" if text.startswith("Can") else "."])
    return Request(text, ((tools[0], arguments),), tuple(tools[1:]))


FAMILIES: list[tuple[Callable[[Source], Request], float]] = [
    (place, 4), (calculator, 2), (record, 5), (file, 2), (message, 2), (search, 2), (create, 3), (home, 1.5), (booking, 1),
    (conversion, 1.5), (timer, 1), (bare, 1), (unseen, 10),
]  # fmt: skip


def request(source: Source, only: Callable[[Source], Request] | None = None) -> Request:
    if only is not None:
        return only(source)
    return source.rng.choices([family for family, _ in FAMILIES], [weight for _, weight in FAMILIES])[0](source)
