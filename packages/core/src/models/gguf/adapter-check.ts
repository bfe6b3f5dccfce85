/** Whether a LoRA adapter fits a model: some that do not would end the native code. Shape: llama.cpp `src/llama-adapter.cpp`. */
import { setImmediate } from 'node:timers/promises'
import type { Gguf, Tensor } from './gguf.ts'

/** What trained weights are scaled by, and stored as. */
export interface Adapter {
  readonly path: string
  /** How much of it is added to the weights: 1 is all, 0 nothing. */
  readonly scale: number
  readonly sizeBytes: number
  readonly modifiedAt: Date
}

const alphaKey = 'adapter.lora.alpha'
const invocationKey = 'adapter.alora.invocation_tokens'
/** In others nothing can be multiplied, or nobody writes them. */
const types: readonly string[] = ['F32', 'F16', 'BF16', 'Q8_0']
/** They are left out by the engine. */
const leftOut = /_norm\.weight$/
const embeddings = 'token_embd.weight'
const float32 = 6

/** So many tensors are looked at without a pause. */
const slice = 2_000

export async function* adapterProblems(
  { metadata, metadataTypes, tensors, isWhole }: Gguf,
  base: Pick<Gguf, 'metadata' | 'tensors'>,
): AsyncGenerator<string> {
  if (!isWhole) yield 'it was cut off, and weights are missing'
  if (metadata['general.type'] !== 'adapter' || metadata['adapter.type'] !== 'lora')
    yield 'it is not a LoRA adapter'

  const [its, wanted] = [metadata, base.metadata].map((one) => one['general.architecture'])
  if (its !== wanted) yield `it is for ${String(its)} models, and this is a ${String(wanted)}`

  // Read without a look at its type.
  const alphaType = metadataTypes[alphaKey] ?? float32
  if (alphaType !== float32) yield `its ${alphaKey} is no 32-bit float`
  const alpha = metadata[alphaKey] ?? 0
  if (!Number.isFinite(alpha)) yield `its ${alphaKey} is ${alpha}`
  if (Object.hasOwn(metadata, invocationKey)) yield 'it is for parts of a conversation only'

  const weights = tensors.filter(({ name }) => !leftOut.test(name))
  if (weights.length === 0) yield 'it has no weights'
  const shapes = { adapter: shapesOf(weights), model: shapesOf(base.tensors) }
  for (const [index, tensor] of weights.entries()) {
    if (index % slice === 0) await setImmediate()
    yield* tensorProblems(tensor, shapes, base.metadata)
  }
}

/** By name. */
type Shapes = ReadonlyMap<string, readonly number[]>

const shapesOf = (tensors: readonly Tensor[]): Shapes =>
  new Map(tensors.map(({ name, shape }) => [name, shape]))

function* tensorProblems(
  { name, type }: Tensor,
  shapes: Readonly<Record<'adapter' | 'model', Shapes>>,
  metadata: Gguf['metadata'],
): Generator<string> {
  const target = name.replace(/\.lora_[ab]$/, '')
  if (target === name) yield `its tensor ${name} is neither lora_a nor lora_b`
  if (!types.includes(type)) yield `its weights cannot be of type ${type}`
  const [a, b] = ['lora_a', 'lora_b'].map((part) => shapes.adapter.get(`${target}.${part}`))
  if (!a || !b) return yield `it has only one half for ${target}`

  const model = shapes.model.get(target)
  if (!model) {
    // Of a model in several files only the first is known here: the engine looks for the others.
    if (!Object.hasOwn(metadata, 'split.count')) yield `the model has no ${target}`
    return
  }
  // The engine would multiply with it at the end, too, the wrong way round.
  if (target === embeddings && !shapes.model.has('output.weight'))
    yield `the model uses its ${embeddings} twice`
  if (!(target === embeddings ? fits(turned(a), b, turned(model)) : fits(a, b, model)))
    yield `its weights for ${target} have another shape than the model's`
}

/** Rows of embeddings are looked up, where others are multiplied with. */
const turned = ([row = 1, rows = 1, ...others]: readonly number[]): readonly number[] => [
  rows,
  row,
  ...others,
]

/** The engine does not look at all of this itself. */
function fits(a: readonly number[], b: readonly number[], model: readonly number[]): boolean {
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
