"""Trains the chat model: `python -m training.train --hours 2`.

Processes with one thread each take micro-batches from a common counter, so that a slow core does not hold up a fast one.
Weights and gradients are in shared memory, and each process updates a share of the weights. The schedule follows the
clock, so that a busy machine ends well, too. A run that was stopped resumes from its last checkpoint.
"""

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.multiprocessing as multiprocessing
import torch.nn.functional as F
from torch import Tensor

from .batches import Batch, Batches
from .model import Model
from .optimizer import Optimizer
from .tokenizer import Tokenizer

_BATCHES_PER_STEP = 4
_WARM_UP_STEPS = 100
_STEPS_PER_CHECKPOINT = 100
_STEPS_PER_LINE = 50
_LONG_TEXTS_FROM = 0.3  # of the time
_USUAL_TARGETS = 1500  # Tokens to learn in a micro-batch. Keeps gradients near 1.


@dataclass(frozen=True)
class Options:
    run: Path
    hours: float
    processes: int
    seed: int
    precision: torch.dtype
    device: str


@dataclass(frozen=True)
class Shared:
    """What all processes see."""

    weights: dict[str, Tensor]
    state: dict[str, Tensor]
    gradients: list[dict[str, Tensor]]
    losses: Tensor
    """[processes, 3]: sum of the loss, number of targets, number of tokens of the step."""


@dataclass(frozen=True)
class Progress:
    step: int = 0
    seconds: float = 0.0


def learning_rate(step: int, progress: float) -> float:
    """A warm-up, a constant part until 30 % of the time, and then a line to 2 %."""
    warm_up = min(1.0, (step + 1) / _WARM_UP_STEPS)
    return warm_up * (1 if progress < 0.3 else 0.02 + 0.98 * (1 - (progress - 0.3) / 0.7))


def backward(model: Model, batch: Batch, device: str = "cpu") -> float:
    """Adds the gradients of a batch, and returns the sum of its loss."""
    hidden = model.hidden(batch.ids.to(device)).flatten(0, 1)[batch.positions.to(device)]
    loss = F.cross_entropy(model.logits(hidden).float(), batch.targets.to(device), reduction="sum")
    (loss * (batch.weight / _USUAL_TARGETS)).backward()
    return loss.item()


def _work(process: int, options: Options, shared: Shared, resumed: Progress, barrier, counter, parent: int) -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    model = Model().to(options.device, options.precision)
    parameters = dict(model.named_parameters())
    tokenizer = Tokenizer.load(options.run / "merges.json")
    # Another seed after each resumption, so that no dialogue is seen twice.
    batches = Batches(tokenizer, options.seed + 1000 * resumed.step + process)
    optimizer = Optimizer(model, shared.weights, shared.state, process, options.processes)
    started = time.time() - resumed.seconds
    line = torch.zeros(3, dtype=torch.float64)
    line_started = time.time()
    step, progress = resumed.step, 0.0
    while progress < 1:
        if parent not in (os.getpid(), os.getppid()):  # The main process was killed.
            barrier.abort()
            return
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(shared.weights[name])
                parameter.grad = None
        shared.losses[process] = 0
        while True:
            with counter.get_lock():
                taken = counter.value
                counter.value += 1
            if taken >= _BATCHES_PER_STEP:
                break
            batch = batches.next()
            loss = backward(model, batch, options.device)
            shared.losses[process] += torch.tensor([loss, len(batch.targets), batch.ids.numel()], dtype=torch.float64)
        with torch.no_grad():
            for name, parameter in parameters.items():
                if parameter.grad is None:
                    shared.gradients[process][name].zero_()
                else:
                    shared.gradients[process][name].copy_(parameter.grad)
        # One process tells the time, so that all agree on the schedule.
        if process == 0:
            shared.losses[-1, 0] = time.time() - started
        barrier.wait()
        seconds = float(shared.losses[-1, 0])
        progress = min(1.0, seconds / (options.hours * 3600))
        batches.with_long_texts = progress >= _LONG_TEXTS_FROM
        if process == 0:
            counter.value = 0
            line += shared.losses[:-1].sum(0)
        optimizer.step(shared.gradients, step, learning_rate(step, progress))
        step += 1
        barrier.wait()
        if process == 0 and (step % _STEPS_PER_LINE == 0 or progress >= 1):
            loss, targets, tokens = line.tolist()
            speed = tokens / (time.time() - line_started)
            print(f"step {step}, {seconds / 60:.1f} min, loss {loss / targets:.4f}, {speed:.0f} tokens/s", flush=True)
            line.zero_()
            line_started = time.time()
        if process == 0 and (step % _STEPS_PER_CHECKPOINT == 0 or progress >= 1):
            save(options.run, shared, Progress(step, seconds))


def save(run: Path, shared: Shared, progress: Progress) -> None:
    content = {"weights": shared.weights, "state": shared.state, "step": progress.step, "seconds": progress.seconds}
    torch.save(content, run / "checkpoint.partial")
    os.replace(run / "checkpoint.partial", run / "checkpoint.pt")


def _share(tensors: dict[str, Tensor], device: str) -> dict[str, Tensor]:
    return {name: tensor.share_memory_() if device == "cpu" else tensor.to(device) for name, tensor in tensors.items()}


def train(options: Options) -> None:
    torch.manual_seed(options.seed)
    weights = {name: parameter.detach().clone() for name, parameter in Model().named_parameters()}
    state = Optimizer.new_state(weights)
    resumed = Progress()
    checkpoint = options.run / "checkpoint.pt"
    if checkpoint.exists():
        content = torch.load(checkpoint, map_location="cpu", weights_only=True)
        weights, state = content["weights"], content["state"]
        resumed = Progress(content["step"], content["seconds"])
        print(f"resumes at step {resumed.step}, after {resumed.seconds / 60:.1f} min")
    shared = Shared(
        _share(weights, options.device),
        _share(state, options.device),
        [_share({name: torch.zeros_like(one) for name, one in weights.items()}, options.device) for _ in range(options.processes)],
        torch.zeros(options.processes + 1, 3, dtype=torch.float64).share_memory_(),
    )
    print(f"{sum(one.numel() for one in weights.values()):,} parameters, {options.precision}, {options.processes} processes")
    context = multiprocessing.get_context("spawn")
    barrier, counter = context.Barrier(options.processes), context.Value("i", 0)
    if options.processes == 1:
        _work(0, options, shared, resumed, barrier, counter, os.getpid())
        return
    workers = [
        context.Process(target=_work, args=(process, options, shared, resumed, barrier, counter, os.getpid()), daemon=True)
        for process in range(options.processes)
    ]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        for worker in workers:
            worker.join(1)
            if worker.exitcode:
                raise SystemExit(f"a training process ended with {worker.exitcode}")


def _has_bfloat16(device: str) -> bool:
    """Whether products in bfloat16 are faster than in float32: with AVX-512-BF16, AMX or a GPU."""
    if device != "cpu":
        return True
    try:
        return any(flag in Path("/proc/cpuinfo").read_text() for flag in ("avx512_bf16", "amx_bf16"))
    except OSError:
        return False


def options_from(arguments: list[str] | None = None) -> Options:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, default=Path("training/run"), help="folder of merges.json and the checkpoints")
    parser.add_argument("--hours", type=float, default=2, help="time of the whole training, with earlier parts of the run")
    parser.add_argument("--processes", type=int, default=2, help="processes with one thread each; 1 on a GPU")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--precision", choices=["auto", "bfloat16", "float32"], default="auto")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    given = parser.parse_args(arguments)
    if given.device != "cpu" and given.processes != 1:
        parser.error("--processes: expected 1 on a GPU")
    is_half = given.precision == "bfloat16" or given.precision == "auto" and _has_bfloat16(given.device)
    precision = torch.bfloat16 if is_half else torch.float32
    return Options(given.run, given.hours, given.processes, given.seed, precision, given.device)


if __name__ == "__main__":
    train(options_from())
