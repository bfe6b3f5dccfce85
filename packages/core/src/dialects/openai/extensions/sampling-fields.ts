/**
 * Sampling fields that other local servers add to OpenAI's API.
 * Shape: llama.cpp's server, "POST /completion"; vLLM, "Sampling Parameters".
 */
import { z } from 'zod'
import type { Sampling } from '../../../engine/request.ts'
import { limits } from '../../../engine/request-limits.ts'
import { integerFrom, omitUndefined, optional } from '../../fields.ts'
import { list } from '../../parse.ts'

const repeatPenalty = z.number().min(limits.repeatPenalty.min).max(limits.repeatPenalty.max)
const probability = z.number().min(0).max(1)

export const localServerFields = {
  repeat_penalty: optional(repeatPenalty),
  repetition_penalty: optional(repeatPenalty),
  repeat_last_n: optional(integerFrom(-1, limits.int32)),
  dry_multiplier: optional(z.number().min(0).max(limits.dry.strength)),
  dry_base: optional(z.number().min(1).max(limits.dry.base)),
  dry_allowed_length: optional(integerFrom(1, limits.int32)),
  dry_penalty_last_n: optional(integerFrom(-1, limits.int32)),
  dry_sequence_breakers: optional(
    list(z.string().min(1).max(limits.breakerLength), { max: limits.breakers }),
  ),
  xtc_probability: optional(probability),
  xtc_threshold: optional(probability),
  ignore_eos: optional(z.boolean()),
  min_tokens: optional(integerFrom(0, limits.int32)),
}
type LocalServerFields = z.output<z.ZodObject<typeof localServerFields>>

/** llama.cpp's default. */
const xtcThreshold = 0.1

/** Translates the fields to sampling options. The result may contain options with the value `undefined`. */
export function toLocalSampling(body: LocalServerFields): {
  [Key in keyof Sampling]: Sampling[Key] | undefined
} {
  const { dry_multiplier: strength = 0, xtc_probability: probability = 0 } = body
  const dry = {
    base: body.dry_base,
    allowedLength: body.dry_allowed_length,
    lastN: body.dry_penalty_last_n,
    breakers: body.dry_sequence_breakers,
  }
  return {
    repeatPenalty: body.repeat_penalty ?? body.repetition_penalty,
    repeatLastN: body.repeat_last_n,
    dry: strength > 0 ? { strength, ...omitUndefined(dry) } : undefined,
    xtc: probability > 0 ? { probability, threshold: body.xtc_threshold ?? xtcThreshold } : undefined,
    ignoreEos: body.ignore_eos,
    minTokens: body.min_tokens,
  }
}
