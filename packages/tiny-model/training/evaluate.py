"""Measures a GGUF file in llama.cpp and prints tables for the model card: `python -m training.evaluate`.

Decoding is greedy. An answer is right if it is exact, or matches the pattern of a hand-written prompt, and stops cleanly.
It needs the node_modules of the repository.
"""

import argparse
import json
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from .evaluation.generated import Question, questions
from .evaluation.handwritten import handwritten_questions, is_right
from .render import prompt
from .tokenizer import Tokenizer

_NODE_SCRIPT = Path(__file__).parent / "evaluation" / "answer.mjs"
_SEED = 4242


def answers(model: Path, prompts: list[list[int]]) -> list[dict]:
    """Answers token ids. Sorted by length, so that long prompts do not enlarge the context of all."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "prompts.json", Path(folder) / "answers.json"
        asked.write_text(json.dumps(prompts))
        sequences = "2" if max(map(len, prompts)) > 1024 else "8"
        subprocess.run(["node", str(_NODE_SCRIPT), str(model), str(asked), str(answered), sequences], check=True)
        return json.loads(answered.read_text())


def is_right_generated(question: Question, answer: str) -> bool:
    wanted = question.dialogue.turns[-1].answer
    if question.dialogue.think:
        thought, mark, answer = answer.partition("</think>")
        if not mark:
            return False
    answer = answer.strip()
    if question.is_free and wanted != answer:
        # A story: long enough, ended, and about the hero that was asked for.
        hero = question.dialogue.turns[-1].thought.removeprefix("The user wants a story. The hero is ").rstrip(".")
        return 80 < len(answer.split()) < 220 and answer[-1] in '.!"' and hero.lower() in answer.lower()
    return answer == wanted


def _table(results: list[tuple[str, bool]]) -> str:
    by_category: defaultdict[str, list[bool]] = defaultdict(list)
    for category, right in results:
        by_category[category].append(right)
    by_category["all"] = [right for _, right in results]
    rows = [f"| {name} | {sum(one)} | {len(one)} | {100 * sum(one) / len(one):.0f} |" for name, one in by_category.items()]
    return "\n".join(["| category | correct | of | % |", "| --- | --- | --- | --- |", *rows])


def _judge(model: Path, tokenizer: Tokenizer, rows: list[tuple[str, str, str, Callable[[str], bool]]], failures: list[dict]) -> str:
    """Asks all prompts of (category, prompt, wanted, check), short ones apart from long ones."""
    encoded = [tokenizer.encode(text) for _, text, _, _ in rows]
    results: list[tuple[str, bool]] = [("", False)] * len(rows)
    for is_long in (False, True):
        chosen = [at for at, ids in enumerate(encoded) if (len(ids) > 1024) == is_long]
        if not chosen:
            continue
        for at, answer in zip(chosen, answers(model, [encoded[at] for at in chosen])):
            category, text, wanted, check = rows[at]
            right = answer["isStopped"] and check(answer["text"])
            results[at] = (category, right)
            if not right:
                failures.append({"category": category, "prompt": text[-600:], "wanted": wanted, "answer": answer["text"]})
    return _table(results)


def evaluate(model: Path, merges: Path, per_category: int, failures_path: Path | None) -> None:
    tokenizer = Tokenizer.load(merges)
    failures: list[dict] = []
    generated = [
        (one.category, prompt(one.dialogue), one.dialogue.turns[-1].answer, lambda text, one=one: is_right_generated(one, text))
        for one in questions(per_category, _SEED)
    ]
    print(f"Generated prompts\n\n{_judge(model, tokenizer, generated, failures)}\n")
    handwritten = [
        (one.category, one.prompt, one.pattern.pattern if one.pattern else str(one.calls), lambda text, one=one: is_right(one, text))
        for one in handwritten_questions()
    ]
    print(f"Hand-written prompts\n\n{_judge(model, tokenizer, handwritten, failures)}")
    if failures_path:
        failures_path.write_text(json.dumps(failures, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("training/run/tiny-chat.gguf"))
    parser.add_argument("--merges", type=Path, default=Path("training/run/merges.json"))
    parser.add_argument("--per-category", type=int, default=60)
    parser.add_argument("--failures", type=Path, help="JSON file for wrong answers")
    options = parser.parse_args()
    evaluate(options.model, options.merges, options.per_category, options.failures)
