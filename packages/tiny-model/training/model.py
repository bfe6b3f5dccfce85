"""The chat model: a small Llama with tied embeddings."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .tokenizer import VOCABULARY_SIZE


@dataclass(frozen=True)
class Shape:
    """All widths are multiples of 32, as Q8_0 needs."""

    vocabulary: int = VOCABULARY_SIZE
    width: int = 256
    layers: int = 6
    heads: int = 8
    kv_heads: int = 4
    inner: int = 448
    rope_base: float = 50_000.0
    epsilon: float = 1e-5
    context: int = 8192

    @property
    def head_width(self) -> int:
        return self.width // self.heads


# Above this length, PyTorch's fused attention is faster on a CPU than masked products.
_PLAIN_ATTENTION = 640


class Norm(nn.Module):
    def __init__(self, width: int, epsilon: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), self.epsilon)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates the halves of a head against each other. llama.cpp rotates neighbours: see `export`."""
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Block(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.attention_norm = Norm(shape.width, shape.epsilon)
        self.qkv = nn.Linear(shape.width, (shape.heads + 2 * shape.kv_heads) * shape.head_width, bias=False)
        self.attention_out = nn.Linear(shape.width, shape.width, bias=False)
        self.inner_norm = Norm(shape.width, shape.epsilon)
        self.gate_up = nn.Linear(shape.width, 2 * shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attention_out(self._attend(self.attention_norm(x), cos, sin, mask))
        gate, up = self.gate_up(self.inner_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)

    def _attend(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        shape = self.shape
        batch, length, _ = x.shape
        heads = self.qkv(x).view(batch, length, shape.heads + 2 * shape.kv_heads, shape.head_width)
        rotated = rotate(heads[:, :, : shape.heads + shape.kv_heads], cos, sin)
        group = shape.heads // shape.kv_heads
        q = rotated[:, :, : shape.heads].transpose(1, 2)
        k = rotated[:, :, shape.heads :].transpose(1, 2).repeat_interleave(group, 1)
        v = heads[:, :, shape.heads + shape.kv_heads :].transpose(1, 2).repeat_interleave(group, 1)
        if length <= _PLAIN_ATTENTION:
            scores = (q * shape.head_width**-0.5) @ k.transpose(-1, -2)
            mixed = scores.add_(mask[:length, :length]).softmax(-1) @ v
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(1, 2).reshape(batch, length, shape.width)


class Model(nn.Module):
    def __init__(self, shape: Shape = Shape()):
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.final_norm = Norm(shape.width, shape.epsilon)
        for name, weight in self.named_parameters():
            if weight.dim() != 2:
                continue
            deviation = 0.04 if name.startswith("embedding") else 0.6 / math.sqrt(weight.shape[1])
            if name.endswith(("attention_out.weight", "down.weight")):
                deviation /= math.sqrt(2 * shape.layers)
            nn.init.normal_(weight, 0, deviation)
        frequencies = shape.rope_base ** (-torch.arange(0, shape.head_width, 2).float() / shape.head_width)
        angles = torch.arange(shape.context).float()[:, None] * frequencies
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        mask = torch.full((_PLAIN_ATTENTION, _PLAIN_ATTENTION), -1e4).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def hidden(self, ids: Tensor) -> Tensor:
        """Returns the last hidden states, before the output embedding."""
        x = self.embedding(ids)
        cos = self.cos[: ids.shape[1], None].to(x.dtype)
        sin = self.sin[: ids.shape[1], None].to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin, self.mask)
        return self.final_norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden @ self.embedding.weight.t()
