/**
 * Checks that a LoRA adapter fits a model. A mismatch can crash llama.cpp. The checks follow
 * `src/llama-adapter.cpp` of llama.cpp.
 */
import { setImmediate } from 'node:timers/promises'
import type { Gguf, Tensor } from './gguf.ts'

const alphaKey = 'adapter.lora.alpha'
const invocationKey = 'adapter.alora.invocation_tokens'
/** Tensor types that llama.cpp can multiply and that occur in LoRA adapters. */
const supportedTypes: readonly string[] = ['F32', 'F16', 'BF16', 'Q8_0']
/** Tensors of a LoRA adapter that llama.cpp ignores. */
const ignoredTensors = /_norm\.weight$/
const embeddings = 'token_embd.weight'
const float32 = 6

/** Number of tensors to check before yielding to the event loop. */
const tensorsPerTick = 2_000

export async function* findAdapterProblems(
  { metadata, metadataTypes, tensors, isComplete }: Gguf,
  base: Pick<Gguf, 'metadata' | 'tensors'>,
): AsyncGenerator<string> {
  if (!isComplete) yield 'it was cut off, and weights are missing'
  if (metadata['general.type'] !== 'adapter' || metadata['adapter.type'] !== 'lora')
    yield 'it is not a LoRA adapter'

  const [architecture, expectedArchitecture] = [metadata, base.metadata].map(
    (one) => one['general.architecture'],
  )
  if (architecture !== expectedArchitecture)
    yield `it is for ${String(architecture)} models, and this is a ${String(expectedArchitecture)}`

  // llama.cpp reads the alpha value without checking its type.
  const alphaType = metadataTypes[alphaKey] ?? float32
  if (alphaType !== float32) yield `its ${alphaKey} is no 32-bit float`
  const alpha = metadata[alphaKey] ?? 0
  if (!Number.isFinite(alpha)) yield `its ${alphaKey} is ${alpha}`
  if (Object.hasOwn(metadata, invocationKey)) yield 'it is an activated LoRA (aLoRA), which is not supported'

  const weights = tensors.filter(({ name }) => !ignoredTensors.test(name))
  if (weights.length === 0) yield 'it has no weights'
  const shapes = { adapter: shapesOf(weights), model: shapesOf(base.tensors) }
  for (const [index, tensor] of weights.entries()) {
    if (index % tensorsPerTick === 0) await setImmediate()
    yield* findTensorProblems(tensor, shapes, base.metadata)
  }
}

/** Tensor shapes by tensor name. */
type TensorShapes = ReadonlyMap<string, readonly number[]>

const shapesOf = (tensors: readonly Tensor[]): TensorShapes =>
  new Map(tensors.map(({ name, shape }) => [name, shape]))

function* findTensorProblems(
  { name, type }: Tensor,
  shapes: Readonly<Record<'adapter' | 'model', TensorShapes>>,
  metadata: Gguf['metadata'],
): Generator<string> {
  const target = name.replace(/\.lora_[ab]$/, '')
  if (target === name) yield `its tensor ${name} is neither lora_a nor lora_b`
  if (!supportedTypes.includes(type)) yield `its weights cannot be of type ${type}`
  const [a, b] = ['lora_a', 'lora_b'].map((part) => shapes.adapter.get(`${target}.${part}`))
  if (!a || !b) return yield `it has only one half for ${target}`

  const model = shapes.model.get(target)
  if (!model) {
    // If the model is split, only its first file was read. llama.cpp checks the tensors of the other files.
    if (!Object.hasOwn(metadata, 'split.count')) yield `the model has no ${target}`
    return
  }
  // Without `output.weight`, llama.cpp uses the embeddings for the output, too. It would also apply the
  // adapter there, although the adapter is transposed.
  if (target === embeddings && !shapes.model.has('output.weight'))
    yield `the model uses its ${embeddings} twice`
  if (
    !(target === embeddings
      ? hasMatchingShape(transpose(a), b, transpose(model))
      : hasMatchingShape(a, b, model))
  )
    yield `its weights for ${target} have another shape than the model's`
}

/** Swaps rows and columns. Embeddings are looked up by row, while other matrices are multiplied. */
const transpose = ([row = 1, rows = 1, ...others]: readonly number[]): readonly number[] => [
  rows,
  row,
  ...others,
]

/** Compares all four dimensions, while llama.cpp compares only the first two. */
function hasMatchingShape(a: readonly number[], b: readonly number[], model: readonly number[]): boolean {
  const at = (shape: readonly number[], index: number): number => shape[index] ?? 1
  const rank = at(b, 0)
  return (
    rank > 0 &&
    at(a, 1) === rank &&
    at(a, 0) === at(model, 0) &&
    at(b, 1) === at(model, 1) &&
    [2, 3].every((index) => at(a, index) === at(model, index) && at(b, index) === at(model, index))
  )
}
