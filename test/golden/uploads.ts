/** The uploaded files of the recording. Similar models replace files that we do not have. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { modelPath } from '@modelmount/tiny-model'
import { adapterFile } from '../support/adapter.ts'
import { variantOf } from '../support/made-models.ts'
import {
  encoderModel,
  narrowModel,
  noiseModel,
  recurrentModel,
  slidingWindowModel,
} from '../support/models.ts'
import { exchanges } from './recording.ts'

/** Files that are identical to the recorded ones. Their details have to be equal. */
const same: Readonly<Record<string, () => Buffer>> = {
  'tiny-chat.gguf': () => readFileSync(narrowModel),
  'tiny-bert.f16.gguf': () => readFileSync(encoderModel),
  'tiny-llama-spm.f16.gguf': () => readFileSync(noiseModel),
  'tiny-mamba.f16.gguf': () => readFileSync(recurrentModel),
  'tiny-gemma3-swa.f16.gguf': () => readFileSync(slidingWindowModel),
}

const standIns: Readonly<Record<string, () => Buffer>> = {
  // These models use reasoning and call tools.
  'tiny-qwen3.f16.gguf': () => readFileSync(modelPath),
  'tiny-qwen3-lora.gguf': () => adapterFile(),
  'qwen2-0.5b.q4_0.gguf': () => variantOf(modelPath),
  // The recorded file was a generative model that also computed embeddings.
  'tiny-rerank.f16.gguf': () => variantOf(encoderModel),
  // A model with random weights and a plain template.
  'tiny-llama3.f16.gguf': () => variantOf(noiseModel),
}

export function uploaded(name: string): Buffer {
  const make = same[name] ?? standIns[name]
  if (!make) throw new Error(`No file stands in for ${name}`)
  return make()
}

/** Models that were created from other files than ours. */
const substitutes = ['qwen3', 'lora', 'tinyq', 'tinyq4', 'tinyq5', 'tinyparser', 'big', 'llama3', 'rerank']
export const isSubstitute = (model: string): boolean => substitutes.includes(model)

/** Digests of our files, by recorded digest. */
export const digests: ReadonlyMap<string, string> = new Map(
  exchanges.flatMap(({ request: { path, upload } }) =>
    upload === undefined
      ? []
      : [[path.slice('/api/blobs/'.length), `sha256:${sha256(uploaded(upload))}`] as const],
  ),
)

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
