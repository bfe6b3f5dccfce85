"""JSON from sentences."""

import json

from .dialogue import Dialogue, single
from .source import Source
from .words import DAYS, JOBS

_ASK = [
    "Extract {k} as JSON: {t}", "Extract the {k} from this text as JSON: {t}", "Return JSON with {k}. {t}",
    "{t} Give me {k} as JSON.", "JSON with the keys {k}: {t}", "Give me {k} as JSON: {t}", "Turn this into JSON with {k}: {t}",
    "Write JSON with the keys {k}. {t}", "Find {k} in this text and answer in JSON: {t}", "As JSON with {k}: {t}",
    "{t}\n\nExtract {k} as JSON.", "Parse this into JSON ({k}): {t}",
]


def _person(source: Source) -> tuple[dict, str]:
    name, age, city = source.name(), source.integer(3, 99), source.city()
    job = source.choice(JOBS) if source.chance(0.7) else source.word()
    values = {"age": age, "city": city, "job": job}
    phrases = {
        "age": [f"is {age} years old", f"is {age}", f"is aged {age}"],
        "city": [f"lives in {city}", f"comes from {city}", f"is from {city}"],
        "job": [f"works as a {job}", f"is a {job}"],
    }
    keys = sorted(source.sample(list(values), source.integer(1, 3)), key=list(values).index)
    parts = [source.choice(phrases[key]) for key in keys]
    source.rng.shuffle(parts)
    return {"name": name, **{key: values[key] for key in keys}}, f"{name} {' and '.join(parts)}."


def _order(source: Source) -> tuple[dict, str]:
    item, quantity, price = source.words(1, 2), source.integer(1, 99), source.integer(1, 500)
    text = source.choice([
        f"{quantity} pieces of {item} for {price} dollars.", f"I want to order {quantity} {item} for {price} dollars.",
        f"Order: {item}, quantity {quantity}, price {price}.", f"Please send {quantity} {item}. The price is {price} dollars.",
    ])
    return {"item": item, "quantity": quantity, "price": price}, text


def _meeting(source: Source) -> tuple[dict, str]:
    title, day, hour = source.words(1, 3), source.choice(DAYS), source.integer(1, 12)
    text = source.choice([
        f"Meeting about {title} on {day} at {hour}.", f"On {day} at {hour} we talk about {title}.",
        f"{title} on {day} at {hour} o'clock", f"Let us discuss {title} on {day} at {hour}.",
    ])
    return {"title": title, "day": day, "hour": hour}, text


def _pairs(source: Source) -> tuple[dict, str]:
    """Any keys, so that the keys are read and not learned."""
    keys: list[str] = []
    while len(keys) < source.choice([1, 2, 2, 3]):
        key = source.word()
        if key not in keys:
            keys.append(key)
    values = {key: source.choice([source.word, source.name, source.code, source.number])() for key in keys}
    parts = [source.choice([f"The {key} is {value}.", f"{key}: {value}.", f"Its {key} is {value}."]) for key, value in values.items()]
    return values, " ".join(parts)


def extract(source: Source) -> Dialogue:
    values, text = source.choice([_person, _person, _order, _meeting, _pairs])(source)
    keys = list(values)
    listed = keys[0] if len(keys) == 1 else f"{', '.join(keys[:-1])} and {keys[-1]}"
    question = source.choice(_ASK).format(k=listed, t=text)
    return single("json", question, json.dumps(values), f"The keys are {listed}.")
