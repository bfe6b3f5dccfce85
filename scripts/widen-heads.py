"""Widens the attention heads of a llama GGUF with zeros. The output stays the same, up to rounding.

llama.cpp's AVX-512 kernels process 64 numbers at a time, but shorter heads one number at a time.

    pip install gguf numpy
    python scripts/widen-heads.py narrow.gguf wide.gguf 64
"""

import sys

import gguf
import numpy as np

source, target, width = sys.argv[1], sys.argv[2], int(sys.argv[3])
reader = gguf.GGUFReader(source)
fields = {name: field.contents() for name, field in reader.fields.items()}
heads = fields["llama.attention.head_count"]
kv_heads = fields["llama.attention.head_count_kv"]
narrow = fields["llama.embedding_length"] // heads
rotated = "llama.rope.dimension_count"


def widen(name: str, weights: np.ndarray) -> np.ndarray | None:
    """Returns the weights with zeros in the new part of each head, or None for tensors without heads."""
    if "attn_output." in name:
        wide = np.zeros((weights.shape[0], heads, width), np.float32)
        wide[:, :, :narrow] = weights.reshape(-1, heads, narrow)
        return wide.reshape(-1, heads * width)
    count = heads if "attn_q." in name else kv_heads if "attn_k." in name or "attn_v." in name else 0
    if count == 0:
        return None
    # llama.cpp divides scores by the square root of the width. The query weights compensate for the new width.
    scale = np.sqrt(width / narrow) if "attn_q." in name else 1
    wide = np.zeros((count, width, weights.shape[1]), np.float32)
    wide[:, :narrow] = weights.reshape(count, narrow, -1) * np.float32(scale)
    return wide.reshape(count * width, -1)


writer = gguf.GGUFWriter(target, "llama")
for name, field in reader.fields.items():
    if name.startswith("GGUF.") or name in ("general.architecture", rotated):
        continue
    if field.types[0] == gguf.GGUFValueType.ARRAY:
        writer.add_array(name, field.contents())
    else:
        writer.add_key_value(name, field.contents(), field.types[0])
writer.add_key_length(width)
writer.add_value_length(width)
writer.add_rope_dimension_count(width)

# RoPE must rotate the whole head. These factors give the old part the angles that it was trained with.
pair = np.arange(width // 2)
factors = fields["llama.rope.freq_base"] ** (2 * pair / narrow - 2 * pair / width)
writer.add_tensor("rope_freqs.weight", np.where(pair < narrow // 2, factors, 1).astype(np.float32))

for tensor in reader.tensors:
    kind = tensor.tensor_type
    wide = widen(tensor.name, gguf.dequantize(tensor.data, kind))
    writer.add_tensor(tensor.name, tensor.data if wide is None else gguf.quantize(wide, kind), raw_dtype=kind)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
