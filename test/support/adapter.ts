/** Builds LoRA adapters as GGUF files. The defaults fit the built-in model. */
import { entry, f32, gguf, tensor, textEntry } from './gguf.ts'

export type Half = readonly [name: string, shape: readonly number[], type?: number]

/** Metadata entries of the adapters, by key. */
export const adapterEntries: Readonly<Record<string, Buffer>> = {
  'general.type': textEntry('general.type', 'adapter'),
  'general.architecture': textEntry('general.architecture', 'llama'),
  'adapter.type': textEntry('adapter.type', 'lora'),
  'adapter.lora.alpha': entry('adapter.lora.alpha', 6, f32(8)),
}

const rank = 4
export const halvesFor = (target: string, [width, height]: readonly [number, number]): readonly Half[] => [
  [`${target}.lora_a`, [width, rank]],
  [`${target}.lora_b`, [rank, height]],
]
export const halves: readonly Half[] = halvesFor('blk.0.ffn_down.weight', [448, 256])

const alignment = 32

/** @param weight scale of the fixed values. With 0, the adapter does not change the model. */
export function adapterFile(
  { tensors = halves, entries = {}, weight = 0.3 } = {} as {
    readonly tensors?: readonly Half[]
    readonly entries?: Readonly<Record<string, Buffer>>
    readonly weight?: number
  },
): Buffer {
  const sizes = tensors.map(([, shape]) => padded(4 * shape.reduce((all, one) => all * one, 1)))
  const offsets = sizes.map((_, index) => sizes.slice(0, index).reduce((sum, size) => sum + size, 0))
  const head = gguf(
    Object.values({ ...adapterEntries, ...entries }),
    tensors.map(([name, shape, type], index) => tensor(name, shape, type, offsets[index])),
  )
  const count = sizes.reduce((sum, size) => sum + size, 0) / 4
  const weights = Float32Array.from({ length: count }, (_, at) => weight * Math.sin(at * at))
  return Buffer.concat([head, Buffer.alloc(padded(head.length) - head.length), Buffer.from(weights.buffer)])
}

const padded = (bytes: number): number => Math.ceil(bytes / alignment) * alignment
