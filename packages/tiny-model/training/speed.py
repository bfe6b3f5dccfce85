"""Measures how fast this machine trains, in about a minute: `python -m training.speed`.

The figures are for one thread, per second of CPU time: other work on the machine disturbs them less than per second of the clock.
"""

import argparse
import time
from pathlib import Path

import torch

from .batches import Batches
from .model import Model
from .optimizer import Optimizer
from .tokenizer import Tokenizer
from .train import backward

_BATCHES = 20


def measure(run: Path) -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    batches = Batches(Tokenizer.load(run / "merges.json"), seed=3)
    started = time.process_time()
    prepared = [batches.next() for _ in range(_BATCHES)]
    tokens = sum(batch.ids.numel() for batch in prepared)
    print(f"generator: {tokens / (time.process_time() - started):,.0f} tokens/s")
    for precision in (torch.bfloat16, torch.float32):
        model = Model().to(precision)
        backward(model, prepared[0])  # The first call prepares kernels.
        started = time.process_time()
        for batch in prepared:
            backward(model, batch)
        print(f"forward and backward, {precision}: {tokens / (time.process_time() - started):,.0f} tokens/s")
    weights = {name: parameter.detach().float().clone() for name, parameter in model.named_parameters()}
    gradients = {name: parameter.grad.float() for name, parameter in model.named_parameters()}
    optimizer = Optimizer(model, weights, Optimizer.new_state(weights), process=0, processes=1)
    optimizer.step([gradients], step=0, rate=1)
    started = time.process_time()
    optimizer.step([gradients], step=1, rate=1)
    print(f"optimizer: {time.process_time() - started:.2f} s per step of all weights")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, default=Path("training/run"))
    measure(parser.parse_args().run)
