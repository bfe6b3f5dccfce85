"""Writes a checkpoint as a GGUF file: `python -m training.export --out tiny-chat.gguf`."""

import argparse
from pathlib import Path

import gguf
import numpy as np
import torch

from .model import Shape
from .render import TEMPLATE
from .tokenizer import CONTROL, END, SPECIAL, Tokenizer

# llama.cpp's AVX-512 kernels process 64 numbers of a head at a time, and shorter heads one number at a time.
_STORED_HEAD = 64


def _neighbours(weights: np.ndarray, heads: int) -> np.ndarray:
    """Reorders the rows of a head: training rotates its halves, and llama.cpp rotates neighbours."""
    width = weights.shape[0] // heads
    return weights.reshape(heads, 2, width // 2, -1).swapaxes(1, 2).reshape(weights.shape)


def _widened(weights: np.ndarray, heads: int, scale: float = 1) -> np.ndarray:
    """Appends rows of zeros to each head."""
    width = weights.shape[0] // heads
    wide = np.zeros((heads, _STORED_HEAD, weights.shape[1]), np.float32)
    wide[:, :width] = weights.reshape(heads, width, -1) * np.float32(scale)
    return wide.reshape(heads * _STORED_HEAD, -1)


def _tensors(weights: dict[str, np.ndarray], shape: Shape) -> dict[str, np.ndarray]:
    tensors = {"token_embd.weight": weights["embedding.weight"], "output_norm.weight": weights["final_norm.weight"]}
    queries, keys = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
    for layer in range(shape.layers):
        source, target = f"blocks.{layer}.", f"blk.{layer}."
        q, k, v = np.split(weights[f"{source}qkv.weight"], [queries, queries + keys])
        # llama.cpp divides scores by the root of the stored width.
        scale = np.sqrt(_STORED_HEAD / shape.head_width)
        tensors[f"{target}attn_q.weight"] = _widened(_neighbours(q, shape.heads), shape.heads, scale)
        tensors[f"{target}attn_k.weight"] = _widened(_neighbours(k, shape.kv_heads), shape.kv_heads)
        tensors[f"{target}attn_v.weight"] = _widened(v, shape.kv_heads)
        tensors[f"{target}attn_output.weight"] = _widened(weights[f"{source}attention_out.weight"].T, shape.heads).T
        tensors[f"{target}attn_norm.weight"] = weights[f"{source}attention_norm.weight"]
        tensors[f"{target}ffn_norm.weight"] = weights[f"{source}inner_norm.weight"]
        gate, up = np.split(weights[f"{source}gate_up.weight"], 2)
        tensors[f"{target}ffn_gate.weight"] = gate
        tensors[f"{target}ffn_up.weight"] = up
        tensors[f"{target}ffn_down.weight"] = weights[f"{source}down.weight"]
    # RoPE rotates the whole stored head. These factors give the trained part the angles of training.
    pair = np.arange(_STORED_HEAD // 2)
    factors = shape.rope_base ** (2 * pair / shape.head_width - 2 * pair / _STORED_HEAD)
    tensors["rope_freqs.weight"] = np.where(pair < shape.head_width // 2, factors, 1).astype(np.float32)
    return tensors


def _add_metadata(writer: gguf.GGUFWriter, tokenizer: Tokenizer, shape: Shape) -> None:
    writer.add_name("tiny")
    writer.add_description("A very small chat model, trained from scratch on dialogues made by a script")
    writer.add_license("MIT")
    writer.add_size_label("3.6M")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_vocab_size(len(tokenizer.vocabulary))
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(_STORED_HEAD)
    writer.add_value_length(_STORED_HEAD)
    writer.add_rope_dimension_count(_STORED_HEAD)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokenizer.vocabulary)
    kinds = gguf.TokenType
    writer.add_token_types(
        [kinds.CONTROL if one in CONTROL else kinds.USER_DEFINED if one in SPECIAL else kinds.NORMAL for one in tokenizer.vocabulary]
    )
    writer.add_token_merges([f"{a} {b}" for a, b in tokenizer.merges])
    writer.add_bos_token_id(0)
    writer.add_pad_token_id(0)
    writer.add_eos_token_id(END)
    writer.add_eot_token_id(END)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def export(run: Path, out: Path) -> None:
    content = torch.load(run / "checkpoint.pt", map_location="cpu", weights_only=True)
    weights = {name: weight.float().numpy() for name, weight in content["weights"].items()}
    shape = Shape()
    tokenizer = Tokenizer.load(run / "merges.json")
    if len(tokenizer.vocabulary) != shape.vocabulary:
        raise ValueError(f"merges.json: expected {shape.vocabulary} tokens, got {len(tokenizer.vocabulary)}")
    writer = gguf.GGUFWriter(out, "llama")
    _add_metadata(writer, tokenizer, shape)
    kind = gguf.GGMLQuantizationType.Q8_0
    for name, tensor in _tensors(weights, shape).items():
        if tensor.ndim == 1:
            writer.add_tensor(name, tensor.astype(np.float32))
        else:
            quantized = gguf.quants.quantize(np.ascontiguousarray(tensor, np.float32), kind)
            writer.add_tensor(name, quantized, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{out}: {out.stat().st_size:,} bytes, step {content['step']}, {content['seconds'] / 60:.0f} min of training")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, default=Path("training/run"))
    parser.add_argument("--out", type=Path, default=Path("training/run/tiny-chat.gguf"))
    options = parser.parse_args()
    export(options.run, options.out)
