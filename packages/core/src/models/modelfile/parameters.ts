/**
 * Parameters of Modelfiles and Ollama requests, as in "Valid parameters and values" of the Ollama API
 * reference. Unknown parameters, and parameters that only change speed, are accepted and ignored.
 */
import { z } from 'zod'
import type { Sampling } from '../../engine/request.ts'
import { limits } from '../../engine/request-limits.ts'

/**
 * Rejects lone surrogates. A lone surrogate would match half a character and leave the other half in the
 * output.
 */
export const StopSequence = z
  .string()
  .max(limits.stopLength)
  .refine((text) => text.isWellFormed(), 'contains a lone surrogate.')

/** Truncates fractions, as Ollama does. */
export const integer = (min: number = -limits.int32, max: number = limits.int32) =>
  z
    .number()
    .transform((value) => Math.trunc(value))
    .pipe(z.number().min(min).max(max))

/** Treats `null` as absent. */
export const optional = <Schema extends z.ZodType>(schema: Schema) =>
  schema
    .nullable()
    .transform((value) => value ?? undefined)
    .optional()

export const ModelParameters = z.object({
  temperature: optional(z.number().min(0).max(limits.temperature)),
  top_k: optional(integer(0)),
  top_p: optional(z.number().min(0).max(1)),
  min_p: optional(z.number().min(0).max(1)),
  // With a negative seed, each request gets a random seed.
  seed: optional(integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)),
  repeat_penalty: optional(z.number().min(limits.repeatPenalty.min).max(limits.repeatPenalty.max)),
  repeat_last_n: optional(integer(-1)),
  presence_penalty: optional(z.number().min(-limits.penalty).max(limits.penalty)),
  frequency_penalty: optional(z.number().min(-limits.penalty).max(limits.penalty)),
  // Checks the length of the list before its elements, since a client can send a million elements.
  stop: optional(z.array(z.unknown()).max(limits.stops).pipe(z.array(StopSequence))),
  num_predict: optional(integer()),
  num_ctx: optional(integer(-limits.int32, limits.context)),
  // node-llama-cpp has no sampler for `typical_p`.
  typical_p: optional(
    z.number().refine((value) => value === 1, {
      params: { issue: 'unsupported' },
      error: '`typical_p` is not supported yet.',
    }),
  ),

  num_keep: optional(integer()),
  num_batch: optional(integer()),
  num_gpu: optional(integer()),
  main_gpu: optional(integer()),
  num_thread: optional(integer()),
  draft_num_predict: optional(integer()),
  use_mmap: optional(z.boolean()),
})
export type ModelParameters = z.output<typeof ModelParameters>

/**
 * Validates the parameters of a stored Modelfile. Returns a message for each unknown or invalid parameter.
 */
export function parseParameters(values: Readonly<Record<string, unknown>>): {
  readonly parameters: ModelParameters
  readonly problems: readonly string[]
} {
  const validated: Record<string, unknown> = {}
  const problems: string[] = []
  for (const [name, value] of Object.entries(values)) {
    const { data, problem = isKnown(name) ? undefined : `\`${name}\` is no parameter.` } = parseParameter(
      name,
      value,
    )
    if (problem) problems.push(problem)
    else if (data !== undefined) validated[name] = data
  }
  return { parameters: validated, problems }
}

/** Yields a message for each invalid value. Unknown parameters are ignored. */
export function* findParameterProblems(values: Readonly<Record<string, unknown>>): Generator<string> {
  for (const [name, value] of Object.entries(values)) {
    const { problem } = parseParameter(name, value)
    if (problem) yield problem
  }
}

const isKnown = (name: string): name is keyof ModelParameters => Object.hasOwn(ModelParameters.shape, name)

function parseParameter(
  name: string,
  value: unknown,
): { readonly data?: unknown; readonly problem?: string } {
  if (!isKnown(name)) return {}
  // Modelfiles of other tools may contain a single stop sequence as a string.
  const { data, error } = ModelParameters.shape[name].safeParse(
    name === 'stop' && typeof value === 'string' ? [value] : value,
  )
  return error ? { problem: `\`${name}\` is wrong: ${error.issues[0]?.message}` } : { data }
}

/** Sampling defaults of Ollama. */
export const defaultOllamaSampling = {
  temperature: 0.8,
  topK: 40,
  topP: 0.9,
  minP: 0,
} as const satisfies Sampling

/** Converts Ollama parameters to sampling options. Absent parameters stay absent. */
export function toSampling({ seed, ...parameters }: ModelParameters): Sampling {
  const sampling: { [Key in keyof Sampling]: Sampling[Key] | undefined } = {
    temperature: parameters.temperature,
    topK: parameters.top_k,
    topP: parameters.top_p,
    minP: parameters.min_p,
    repeatPenalty: parameters.repeat_penalty,
    repeatLastN: parameters.repeat_last_n,
    presencePenalty: parameters.presence_penalty,
    frequencyPenalty: parameters.frequency_penalty,
    seed: seed === undefined || seed >= 0 ? seed : 'random',
  }
  return Object.fromEntries(Object.entries(sampling).filter(([, value]) => value !== undefined))
}

/** Drops empty stop sequences, which would end every answer at once. Returns `undefined` if all are empty. */
export function toStops({ stop }: ModelParameters): readonly string[] | undefined {
  const stops = stop?.filter((text) => text !== '')
  return stop?.length && !stops?.length ? undefined : stops
}

/** Lower limit of a context, in tokens. */
const minContextSize = 16

/** Returns `undefined` if the server must choose the context size. */
export const toContextSize = ({ num_ctx: size = 0 }: ModelParameters): number | undefined =>
  size > 0 ? Math.max(minContextSize, size) : undefined
