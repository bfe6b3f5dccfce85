"""Short stories from a grammar of twelve sentences."""

from .dialogue import Dialogue, single
from .source import Source

_HEROES = "fox bear rabbit cat dog mouse owl frog turtle squirrel horse hen robot dragon girl boy king queen farmer wizard".split()
_FRIENDS = "owl mouse bird hedgehog goat deer duck snail beaver crow".split()
_PLACES = ["in a small village", "near a quiet river", "in a deep forest", "on a green hill", "by the sea", "in an old castle",
           "at the edge of a town", "in a sunny valley"]
_QUALITIES = "little brave curious kind clever shy cheerful lonely".split()
_THINGS = ["golden key", "lost letter", "red kite", "silver bell", "broken clock", "old map", "warm scarf", "shiny stone",
           "tiny seed", "blue lamp"]
_OBSTACLES = [
    ("the bridge was broken", "They built a new one out of old branches."),
    ("it started to rain", "They waited under a big tree until the sun came back."),
    ("the path was dark", "They followed the light of the moon."),
    ("a tall wall stood in the way", "They found a small door behind the leaves."),
    ("they lost the way", "They asked the wind and listened to the river."),
    ("the hill was steep", "They climbed slowly, step by step."),
]
_MORALS = ["that good friends make every road shorter", "that it is fine to ask for help", "that small steps can lead far",
           "that sharing makes joy bigger", "that courage can be quiet", "that patience is a strong power"]
_OWNERS = ["the old baker", "a small child", "the teacher", "a tired traveler", "the miller", "an old sailor", "the gardener"]
_ASK = ["Tell me a story", "Write a story", "Please tell me a story", "I want a story", "Write a short story", "Tell a story",
        "Can you tell me a story", "Make up a story", "I would like a story", "A short story", "Tell me a tale"]
_ASK_ANY = ["Tell me a story.", "Tell me a short story.", "Write a story.", "Please tell me a story.", "I want to hear a story.",
            "A story, please.", "Can you tell me a story?", "Tell me something nice, a story.", "Story!", "a tale please",
            "Do you know a story?", "Write something creative.", "Tell my child a story.", "A story for bed time."]


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _text(source: Source, hero: str, name: str) -> str:
    friend = source.name()
    while friend == name:
        friend = source.name()
    place, quality, thing = source.choice(_PLACES), source.choice(_QUALITIES), source.choice(_THINGS)
    obstacle, way_out = source.choice(_OBSTACLES)
    owner = source.choice(_OWNERS)
    sentences = [
        [f"Once upon a time, {_article(quality)} {hero} named {name} lived {place}.",
         f"There was once {_article(quality)} {hero} called {name} who lived {place}.",
         f"Long ago, {place}, there lived {_article(quality)} {hero} named {name}."],
        [f"Every morning {name} went for a walk and looked at the sky.", f"{name} liked to walk and to listen to the birds.",
         f"{name} loved quiet mornings and warm bread."],
        [f"One day {name} found {_article(thing)} on the ground.", f"One morning {name} found {_article(thing)} in the grass.",
         f"One evening {name} saw {_article(thing)} under a tree."],
        [f'"Who lost this?" {name} asked.', f"{name} wondered who had lost it.", f'"I must find the owner," said {name}.'],
        [f"On the way {name} met {_article(source.choice(_FRIENDS))} named {friend}."],
        [f'"I will help you," said {friend}.', f'"Let us go together," said {friend}.', f"{friend} was happy to come along."],
        [f"They walked together, but {obstacle}.", f"They walked for a long time, but then {obstacle}."],
        [way_out],
        [f"At last they found out that the {thing} belonged to {owner}.", f"In the end they learned that the {thing} belonged to {owner}."],
        [f"{owner.capitalize()} thanked them and gave them soup and bread.", f"{owner.capitalize()} smiled and thanked them with a song.",
         f"{owner.capitalize()} was so glad that everyone danced."],
        [f"That day {name} and {friend} learned {source.choice(_MORALS)}."],
        ["The end.", "And they stayed friends for ever.", "From then on they met every day."],
    ]
    return " ".join(source.choice(options) for options in sentences)


def story(source: Source) -> Dialogue:
    hero = source.choice(_HEROES) if source.chance(0.8) else source.word()
    name = source.name()
    ask, article = source.choice(_ASK), _article(hero)
    kind = source.rng.random()
    if source.held_out or kind < 0.4:
        question = ask + source.choice([" about {a} named {n}.", " about {a} called {n}.", " about {n} the {h}.", ", the hero is {a} named {n}."])
    elif kind < 0.6:
        question = ask + source.choice([" about {a}.", " about {a}, please.", " with {a}."])
    elif kind < 0.75:
        question = ask + source.choice([" about {n}.", " with {n}."])
    else:
        question = source.choice(_ASK_ANY)
    question = source.noisy(question, 0.25).format(a=article, n=name, h=hero)
    return single("story", question, _text(source, hero, name), f"The user wants a story. The hero is {name}.")
