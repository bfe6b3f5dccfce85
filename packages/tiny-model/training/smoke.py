"""Learns merges, trains for two minutes, resumes, exports, and answers a prompt: `python -m training.smoke`."""

import tempfile
import time
from pathlib import Path

import torch

from .evaluate import answers
from .export import export
from .generator.dialogue import single
from .learn_merges import write_merges
from .render import prompt
from .tokenizer import Tokenizer
from .train import options_from, train


def main() -> None:
    started = time.time()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder)
        write_merges(run, 12_000)
        train(options_from(["--run", folder, "--hours", "0.02"]))
        first = torch.load(run / "checkpoint.pt", weights_only=True)
        train(options_from(["--run", folder, "--hours", "0.04"]))
        second = torch.load(run / "checkpoint.pt", weights_only=True)
        if second["step"] <= first["step"]:
            raise SystemExit("the training did not resume from its checkpoint")
        export(run, run / "tiny-chat.gguf")
        tokenizer = Tokenizer.load(run / "merges.json")
        ids = tokenizer.encode(prompt(single("chat", "Hello", "")))
        [answer] = answers(run / "tiny-chat.gguf", [ids])
        print(f"Hello -> {answer['text']!r}")
    print(f"trained, resumed, exported and loaded in {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
