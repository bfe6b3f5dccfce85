"""Muon for matrices, and Adam for the embedding and the norms, on weights that several processes share."""

from collections import defaultdict
from dataclasses import dataclass

import torch
from torch import Tensor

from .model import Model, Shape

_MUON_RATE = 0.02
_MUON_DECAY = 0.05
_ADAM_RATE = 0.003
_ADAM_BETAS = (0.9, 0.98)


@dataclass(frozen=True)
class Slice:
    """Rows of a weight that are one matrix for Muon: queries, keys and values are separate."""

    name: str
    low: int
    high: int

    def of(self, tensors: dict[str, Tensor]) -> Tensor:
        return tensors[self.name][self.low : self.high]


def _slices(weights: dict[str, Tensor], shape: Shape) -> list[Slice]:
    slices: list[Slice] = []
    for name, weight in weights.items():
        if _is_adam(name, weight):
            continue
        cuts = [0, weight.shape[0]]
        if ".qkv." in name:
            queries, keys = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
            cuts = [0, queries, queries + keys, queries + 2 * keys]
        elif ".gate_up." in name:
            cuts = [0, shape.inner, 2 * shape.inner]
        slices += [Slice(name, low, high) for low, high in zip(cuts, cuts[1:])]
    return slices


def _is_adam(name: str, weight: Tensor) -> bool:
    return weight.dim() != 2 or name.startswith("embedding")


def _orthogonalize(matrices: Tensor) -> Tensor:
    """Five Newton-Schulz steps towards the nearest orthogonal matrices, with the usual coefficients of Muon."""
    x = matrices.bfloat16()
    is_tall = x.shape[-2] > x.shape[-1]
    if is_tall:
        x = x.mT
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True) + 1e-7).bfloat16()
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * (square @ square)) @ x
    return (x.mT if is_tall else x).float()


class Optimizer:
    """Updates a share of the weights. The shares of all processes together are all weights."""

    def __init__(self, model: Model, weights: dict[str, Tensor], state: dict[str, Tensor], process: int, processes: int):
        self.weights = weights
        self.state = state
        by_size: defaultdict[tuple[int, int], list[Slice]] = defaultdict(list)
        for part in _slices(weights, model.shape):
            by_size[part.high - part.low, weights[part.name].shape[1]].append(part)
        groups = [group[at::processes] for group in by_size.values() for at in range(processes)]
        self.groups = [group for group in groups if group][process::processes]
        self.adam = [name for name, weight in weights.items() if _is_adam(name, weight)][process::processes]

    @staticmethod
    def new_state(weights: dict[str, Tensor]) -> dict[str, Tensor]:
        momenta = {f"momentum.{name}": torch.zeros_like(weight) for name, weight in weights.items()}
        squares = {f"square.{name}": torch.zeros_like(weight) for name, weight in weights.items() if _is_adam(name, weight)}
        return momenta | squares

    @torch.no_grad()
    def step(self, gradients: list[dict[str, Tensor]], step: int, rate: float) -> None:
        """Applies the sum of the gradients of all processes. `rate` is from 0 to 1."""
        momentum = min(0.95, 0.85 + 0.1 * step / 300)
        for group in self.groups:
            gradient = torch.stack([sum(part.of(one) for one in gradients) for part in group])
            mean = torch.stack([self.state[f"momentum.{part.name}"][part.low : part.high] for part in group])
            mean.lerp_(gradient, 1 - momentum)
            update = _orthogonalize(gradient.lerp(mean, momentum))
            scale = max(1, gradient.shape[1] / gradient.shape[2]) ** 0.5
            for at, part in enumerate(group):
                self.state[f"momentum.{part.name}"][part.low : part.high] = mean[at]
                weight = part.of(self.weights)
                weight.mul_(1 - _MUON_RATE * rate * _MUON_DECAY).add_(update[at], alpha=-_MUON_RATE * rate * scale)
        first, second = _ADAM_BETAS
        for name in self.adam:
            gradient = sum(one[name] for one in gradients)
            mean, square = self.state[f"momentum.{name}"], self.state[f"square.{name}"]
            mean.lerp_(gradient, 1 - first)
            square.lerp_(gradient * gradient, 1 - second)
            corrected = (square / (1 - second ** (step + 1))).sqrt() + 1e-8
            self.weights[name].add_(mean / (1 - first ** (step + 1)) / corrected, alpha=-_ADAM_RATE * rate)
