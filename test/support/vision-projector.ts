/**
 * A small projector of the type LLaVA with random weights, for llama.cpp's `--mmproj`. It turns each image into 16 vectors of the
 * built-in model's width, so that a server reads images without understanding them. Shapes: llama.cpp, `tools/mtmd/clip.cpp`.
 */
import { arrayEntry, countEntry, entry, f32, gguf, tensor, textEntry, u8 } from './gguf.ts'
import { randomOf } from './random.ts'

const width = 32
const feedForward = 64
const patch = 14
const patchesPerSide = 4
/** Width of the built-in model. */
const projected = 256
const alignment = 32

/** Tokens of each image. */
export const imageTokens = patchesPerSide ** 2

const norm = (name: string): readonly Shape[] => [
  [`${name}.weight`, width],
  [`${name}.bias`, width],
]
type Shape = readonly [name: string, ...shape: number[]]

/** LLaVA does not run the last layer. */
const shapes: readonly Shape[] = [
  ['v.patch_embd.weight', patch, patch, 3, width],
  ['v.position_embd.weight', width, imageTokens],
  ...norm('v.pre_ln'),
  ...[0, 1].flatMap((layer): readonly Shape[] => [
    ...['q', 'k', 'v', 'out'].map((name): Shape => [`v.blk.${layer}.attn_${name}.weight`, width, width]),
    ...norm(`v.blk.${layer}.ln1`),
    ...norm(`v.blk.${layer}.ln2`),
    [`v.blk.${layer}.ffn_up.weight`, width, feedForward],
    [`v.blk.${layer}.ffn_down.weight`, feedForward, width],
  ]),
  ['mm.0.weight', width, projected],
  ['mm.0.bias', projected],
  ['mm.2.weight', projected, projected],
  ['mm.2.bias', projected],
]

/** Returns the GGUF file, 0.4 MB. */
export function createVisionProjector(): Buffer {
  const random = randomOf(1)
  const weights: Buffer[] = []
  let offset = 0
  const tensors = shapes.map(([name, ...shape]) => {
    const count = shape.reduce((product, size) => product * size, 1)
    const values = Float32Array.from({ length: count }, () => (random() - 0.5) / 4)
    const bytes = pad(Buffer.from(values.buffer))
    const described = tensor(name, shape, 0, offset)
    weights.push(bytes)
    offset += bytes.length
    return described
  })
  const head = gguf(
    [
      textEntry('general.architecture', 'clip'),
      ...[entry('clip.has_vision_encoder', 7, u8(1)), textEntry('clip.projector_type', 'mlp')],
      ...[
        countEntry('clip.vision.image_size', patch * patchesPerSide),
        countEntry('clip.vision.patch_size', patch),
      ],
      ...[countEntry('clip.vision.embedding_length', width), countEntry('clip.vision.block_count', 2)],
      ...[countEntry('clip.vision.feed_forward_length', feedForward)],
      ...[
        countEntry('clip.vision.attention.head_count', 2),
        countEntry('clip.vision.projection_dim', projected),
      ],
      entry('clip.vision.attention.layer_norm_epsilon', 6, f32(1e-5)),
      arrayEntry('clip.vision.image_mean', 6, ...[0.5, 0.5, 0.5].map(f32)),
      arrayEntry('clip.vision.image_std', 6, ...[0.5, 0.5, 0.5].map(f32)),
    ],
    tensors,
  )
  return Buffer.concat([pad(head), ...weights])
}

const pad = (bytes: Buffer): Buffer =>
  Buffer.concat([bytes, Buffer.alloc((alignment - (bytes.length % alignment)) % alignment)])
