/** Schema of the list of models in the API between apps. */
import { z } from 'zod'
import type { Capability, ModelDetails } from '../../models/gguf/model-details.ts'
import type { Model } from '../../models/model.ts'

/** A model without what belongs to one machine: its files. */
export type ModelEntry = Pick<Model, 'name' | 'digest' | 'sizeBytes' | 'defaults' | 'config'> & {
  /** Milliseconds since 1970. */
  readonly modifiedAt: number
  /** Absent if the file of the model cannot be read. Without the list of tensors, which is long. */
  readonly details?: ModelDetails
}

export const capabilities = [
  'completion',
  'embedding',
  'tools',
  'insert',
  'thinking',
  'vision',
  'audio',
] as const satisfies readonly Capability[]

const text = z.string().optional()
const count = z.number().min(0)
const DetailsSchema = z.object({
  metadata: z.record(z.string(), z.unknown()),
  tensors: z.tuple([]),
  architecture: z.string(),
  parameterCount: count,
  parameterSize: z.string(),
  quantization: z.string(),
  contextSize: count.optional(),
  embeddingSize: count.optional(),
  chatTemplate: text,
  capabilities: z.array(z.enum(capabilities)),
})
const ModelSchema = z.object({
  name: z.string().min(1),
  digest: z.string(),
  sizeBytes: count,
  modifiedAt: z.number(),
  details: DetailsSchema.optional(),
  defaults: z
    .object({
      template: text,
      system: text,
      parameters: z.record(z.string(), z.unknown()),
      messages: z.array(z.object({ role: z.string(), content: z.string() })),
      license: z.array(z.string()),
    })
    .optional(),
  config: z.looseObject({}).optional(),
})
const ListSchema: z.ZodType<unknown> = z.object({ models: z.array(ModelSchema) })

/** Returns undefined if the value is no list of models. */
export function parseModels(value: unknown): readonly ModelEntry[] | undefined {
  const { success, data } = ListSchema.safeParse(value)
  return success ? (data as { readonly models: readonly ModelEntry[] }).models : undefined
}
