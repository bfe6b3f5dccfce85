"""Addition and subtraction up to two digits, products up to 12 times 12, and an honest answer to everything beyond."""

from .dialogue import Dialogue, single
from .source import Source

TOO_HARD = "I can only add and subtract numbers up to 99, and multiply up to 12 times 12."

_FRAMES = [
    "What is {}?", "What is {}?", "{}", "{} = ?", "{}=", "Calculate {}.", "Compute {}.", "How much is {}?", "What's {}?",
    "Solve {}.", "Can you calculate {}?", "Tell me what {} is.", "What is the result of {}?", "{}?", "Please solve {}.",
    "Do you know what {} is?", "what is {}", "Result of {}?",
]
_PLUS = ["{} + {}", "{} + {}", "{}+{}", "{} plus {}"]
_MINUS = ["{} - {}", "{} - {}", "{}-{}", "{} minus {}"]
_TIMES = ["{} * {}", "{} * {}", "{}*{}", "{} times {}", "{} x {}"]
_ADD_WORDS = [
    "Add {} and {}.", "What is the sum of {} and {}?", "Add {} to {}.", "Sum of {} and {}", "Please add {} and {}.",
    "I have {} apples and get {} more. How many apples do I have?", "Can you add {} and {} for me?", "hey, add {} and {}",
    "I had {} apples and bought {} more. How many do I have?", "{} and {} make?", "What do {} and {} make together?",
    "There are {} red and {} blue balls. How many balls are there?", "Sum up {} and {}.", "add up {} and {}",
    "I own {} books and buy {} more books. How many books do I own?",
]
_SUBTRACT_WORDS = [
    "Subtract {1} from {0}.", "What is the difference of {0} and {1}?", "Take {1} from {0}.", "{0} take away {1}",
    "I have {0} apples and eat {1}. How many are left?", "I had {0} coins and lost {1}. How many do I have?",
    "Please subtract {1} from {0}.", "What is {0} less {1}?", "What remains of {0} without {1}?",
]
_MULTIPLY_WORDS = [
    "Multiply {} by {}.", "What is the product of {} and {}?", "Multiply {} and {}.", "Please multiply {} with {}.",
    "Product of {} and {}", "{} multiplied by {}?", "I have {} boxes with {} eggs each. How many eggs are there?",
]


def _pair(source: Source, operation: str) -> tuple[int, int]:
    while True:
        high = 99 if source.chance(0.7) else 12
        a, b = source.integer(0, high), source.integer(0, high)
        if operation == "-" and a < b and source.chance(0.85):
            a, b = b, a
        if source.fits(operation, a, b):
            return a, b


def _ask(source: Source, symbols: list[str], sentences: list[str], a: int, b: int) -> str:
    if source.chance(0.75):
        return source.noisy(source.choice(_FRAMES), 0.2).format(source.choice(symbols).format(a, b))
    return source.noisy(source.choice(sentences), 0.2).format(a, b)


def add(source: Source) -> Dialogue:
    a, b = _pair(source, "+")
    return single("addition", _ask(source, _PLUS, _ADD_WORDS, a, b), f"{a} + {b} = {a + b}", _add_thought(a, b), short=str(a + b))


def subtract(source: Source) -> Dialogue:
    a, b = _pair(source, "-")
    thought = _subtract_thought(a, b)
    return single("subtraction", _ask(source, _MINUS, _SUBTRACT_WORDS, a, b), f"{a} - {b} = {a - b}", thought, short=str(a - b))


def multiply(source: Source) -> Dialogue:
    """Products are facts to learn, so all of them are trained."""
    a, b = source.integer(0, 12), source.integer(0, 12)
    question = _ask(source, _TIMES, _MULTIPLY_WORDS, a, b)
    return single("multiplication", question, f"{a} * {b} = {a * b}", "The user wants a product.", short=str(a * b))


def out_of_range(source: Source) -> Dialogue:
    """Larger numbers, and divisions."""
    a, b = source.integer(100, source.choice([999, 9_999, 999_999])), source.integer(13, source.choice([99, 999, 9_999]))
    if source.chance(0.4):
        a, b = b, a
    kind = source.rng.random()
    if kind < 0.7:
        symbols, sentences = source.choice([(_PLUS, _ADD_WORDS), (_MINUS, _SUBTRACT_WORDS), (_TIMES, _MULTIPLY_WORDS)])
        return single("out of range", _ask(source, symbols, sentences, a, b), TOO_HARD, "The numbers are too large for me.")
    if kind < 0.8:
        question = _ask(source, _TIMES, _MULTIPLY_WORDS, source.integer(13, 99), source.integer(13, 99))
        return single("out of range", question, TOO_HARD, "The numbers are too large for me.")
    question = _ask(source, ["{} / {}", "{} divided by {}", "{}/{}"], ["Divide {} by {}."], source.number(), source.integer(1, 99))
    return single("out of range", question, TOO_HARD, "I cannot divide.")


def _add_thought(a: int, b: int) -> str:
    ones, tens = a % 10 + b % 10, a // 10 + b // 10
    thought = f"{a % 10} + {b % 10} = {ones}."
    if a > 9 or b > 9:
        carry = " + 1" if ones > 9 else ""
        thought += f" {a // 10} + {b // 10}{carry} = {tens + (ones > 9)}."
    return thought


def _subtract_thought(a: int, b: int) -> str:
    if a < b:
        return f"{b} - {a} = {b - a}. The result is negative."
    borrow = a % 10 < b % 10
    minuend = a % 10 + 10 * borrow
    thought = f"{minuend} - {b % 10} = {minuend - b % 10}."
    if a > 9:
        thought += f" {a // 10} - {b // 10}{' - 1' if borrow else ''} = {a // 10 - b // 10 - borrow}."
    return thought
