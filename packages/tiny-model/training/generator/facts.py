"""A few facts of the world, and the sentiment of short texts."""

from .dialogue import Dialogue, single
from .source import Source

_CAPITALS = dict(
    pair.split(":")
    for pair in """France:Paris Germany:Berlin Spain:Madrid Italy:Rome Austria:Vienna Norway:Oslo Portugal:Lisbon
    Poland:Warsaw Greece:Athens Ireland:Dublin Finland:Helsinki Sweden:Stockholm Denmark:Copenhagen Belgium:Brussels
    Hungary:Budapest Japan:Tokyo China:Beijing India:Delhi Egypt:Cairo Kenya:Nairobi Peru:Lima Canada:Ottawa Russia:Moscow
    England:London Turkey:Ankara Cuba:Havana Thailand:Bangkok Vietnam:Hanoi Iran:Tehran Switzerland:Bern""".split()
)
_THING_COLORS = dict(
    pair.split(":")
    for pair in """sky:blue grass:green snow:white coal:black blood:red banana:yellow sun:yellow carrot:orange milk:white
    night:black leaf:green tomato:red""".split()
)
_SOUNDS = dict(
    pair.split(":")
    for pair in "cat:meow dog:woof cow:moo sheep:baa duck:quack pig:oink horse:neigh lion:roar bee:buzz snake:hiss".split()
)
_ONE_WAY_OPPOSITES = dict(
    pair.split(":")
    for pair in """hot:cold big:small fast:slow good:bad day:night up:down left:right open:closed happy:sad old:young
    rich:poor hard:soft light:dark long:short high:low full:empty early:late clean:dirty strong:weak wet:dry""".split()
)
_OPPOSITES = {**_ONE_WAY_OPPOSITES, **{b: a for a, b in _ONE_WAY_OPPOSITES.items()}}

_CAPITAL = ["What is the capital of {}?", "Which city is the capital of {}?", "Tell me the capital of {}.",
            "Name the capital of {}.", "capital of {}?", "What's the capital of {}?", "{}'s capital?", "{} capital",
            "Do you know the capital of {}?", "I need the capital of {}.", "The capital of {} is?"]
_COLOR = ["What color is {}?", "Which color does {} have?", "What is the color of {}?", "What colour is {}?",
          "Tell me the color of {}.", "which color is {}", "{} has which color?"]
_SOUND = ["What sound does a {} make?", "What does a {} say?", "Which sound does a {} make?", "How does a {} sound?",
          "The sound of a {}?", "What noise does a {} make?", "a {} makes which sound?"]
_OPPOSITE = ["What is the opposite of {}?", "Tell me the opposite of {}.", "Opposite of {}?",
             "Which word is the opposite of {}?", "The contrary of {}?", "Name the opposite of {}.", "opposite: {}"]

_GOOD = "love great wonderful good excellent amazing happy perfect nice fantastic enjoy best beautiful awesome brilliant".split()
_BAD = "hate terrible awful bad horrible broken sad worst poor ugly boring disappointing useless dislike disgusting".split()
_SENTIMENT = ["Classify as positive or negative: {}", "Is this positive or negative? {}", "Sentiment: {}",
              "What is the sentiment of this text: {}", "Positive or negative: {}", 'What is the sentiment of "{}"?',
              "Tell me if this is positive or negative: {}", "Rate this review as positive or negative: {}",
              "Sentiment of this sentence: {}", "Label the sentiment: {}", 'Is "{}" positive or negative?']


def fact(source: Source) -> Dialogue:
    kind = source.rng.random()
    if kind < 0.35:
        country = source.choice(list(_CAPITALS))
        city = _CAPITALS[country]
        return single("facts", source.noisy(source.choice(_CAPITAL)).format(country), f"The capital of {country} is {city}.",
                      f"The user asks for the capital of {country}.", short=city)
    if kind < 0.5:
        thing = source.choice(list(_THING_COLORS))
        color = _THING_COLORS[thing]
        named = f"the {thing}" if source.chance(0.8) else thing
        return single("facts", source.noisy(source.choice(_COLOR)).format(named), f"The color of the {thing} is {color}.",
                      f"The user asks for the color of the {thing}.", short=color.capitalize())
    if kind < 0.65:
        animal = source.choice(list(_SOUNDS))
        sound = _SOUNDS[animal]
        return single("facts", source.noisy(source.choice(_SOUND)).format(animal), f"A {animal} says {sound}.",
                      f"The user asks for the sound of a {animal}.", short=sound.capitalize())
    word = source.choice(list(_OPPOSITES))
    opposite = _OPPOSITES[word]
    return single("facts", source.noisy(source.choice(_OPPOSITE)).format(word), f"The opposite of {word} is {opposite}.",
                  f"The user asks for the opposite of {word}.", short=opposite.capitalize())


def sentiment(source: Source) -> Dialogue:
    label = source.choice(["positive", "negative"])
    word = source.choice(_GOOD if label == "positive" else _BAD)
    noun = source.word()
    if word in ("love", "hate", "enjoy", "dislike"):
        text = source.choice(["I {} this {}.", "I really {} the {}.", "We {} our {}."]).format(word, noun)
    else:
        frames = ["This {1} is {0}.", "The {1} was {0}.", "What a {0} {1}!", "The {1} is really {0}.", "It was a {0} {1}.",
                  "the {1} were {0}", "a {0} {1}", "The {1} and the {2} were {0}.", "{0} {1}, {2} and all"]
        text = source.choice(frames).format(word, noun, source.word())
    return single("sentiment", source.choice(_SENTIMENT).format(text), label, f"The word {word} is {label}.", short=label)
