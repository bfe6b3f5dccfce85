/** Fields of sampling, limits and output constraints, which chats and completions share. */
import { createHash, randomInt } from 'node:crypto'
import type { DryPenalty, ExcludeTop, GenerateRequest, OutputFormat, Sampling } from '../../request.ts'
import { unlimitedTokens } from '../../request-limits.ts'
import { unsupportedByUpstream } from '../upstream-errors.ts'
import type { SamplingExtension, ServerFeatures } from './server-kind.ts'

/** All servers take seeds of 31 bits. */
const maxSeed = 2 ** 31

/** @param tenant the server's cache is not shared with other tenants, if the server can separate them */
export function toCommonFields(
  request: GenerateRequest,
  features: ServerFeatures,
  tenant: string | undefined,
): object {
  const { stop, sampling = {}, format, promptLogprobs } = request
  if (promptLogprobs) throw unsupportedByUpstream('log probabilities of the prompt', 'promptLogprobs')
  return {
    model: request.model,
    stream: true,
    stream_options: {
      include_usage: true,
      ...(features.hasContinuousUsage && { continuous_usage_stats: true }),
    },
    ...(stop?.length && { stop }),
    ...(request.returnProgress && features.hasProgress && { return_progress: true }),
    ...toSampling(sampling, features),
    ...(format && toFormat(format, features)),
    ...(features.hasCacheSalt && tenant !== undefined && { cache_salt: hash(tenant) }),
  }
}

/** The server need not learn the names of tenants. */
const hash = (tenant: string): string => createHash('sha256').update(tenant).digest('base64url')

/** Returns undefined without a limit. */
export function limitOf({ maxTokens, defaultMaxTokens }: GenerateRequest): number | undefined {
  const limit = maxTokens ?? defaultMaxTokens
  if (limit === 0) throw unsupportedByUpstream('answers without output', 'maxTokens')
  return limit === unlimitedTokens ? undefined : limit
}

function toSampling(sampling: Sampling, features: ServerFeatures): object {
  const { temperature, topP, seed, presencePenalty, frequencyPenalty, logitBias } = sampling
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: Math.max(topP, features.minTopP) }),
    ...(typeof seed === 'number' && { seed }),
    ...(seed === 'random' && features.hasDefaultSeed && { seed: randomInt(maxSeed) }),
    ...(presencePenalty && { presence_penalty: presencePenalty }),
    ...(frequencyPenalty && { frequency_penalty: frequencyPenalty }),
    ...(logitBias?.length && { logit_bias: toLogitBias(logitBias, features) }),
    ...toExtensions(sampling, features),
  }
}

const extensions = [
  ...(['topK', 'minP', 'repeatPenalty', 'repeatLastN', 'ignoreEos', 'minTokens', 'dry', 'xtc'] as const),
] satisfies readonly SamplingExtension[]

/** Values that change nothing, so that a server need not have the field. */
const neutral: Readonly<Partial<Record<SamplingExtension, unknown>>> = {
  ...{ topK: 0, minP: 0, repeatPenalty: 1, repeatLastN: 64, ignoreEos: false, minTokens: 0 },
}

function toExtensions(sampling: Sampling, { sampling: fields }: ServerFeatures): object {
  const body: Record<string, unknown> = {}
  for (const name of extensions) {
    const value = sampling[name]
    if (value === undefined || (value === neutral[name] && !fields[name])) continue
    if (!fields[name]) throw unsupportedByUpstream(`the option ${name}`, `sampling.${name}`)
    if (name === 'dry' && sampling.dry) Object.assign(body, toDry(sampling.dry))
    else if (name === 'xtc' && sampling.xtc) Object.assign(body, toXtc(sampling.xtc))
    else body[fields[name]] = value
  }
  return body
}

const toDry = (dry: DryPenalty): object => ({
  dry_multiplier: dry.strength,
  ...(dry.base !== undefined && { dry_base: dry.base }),
  ...(dry.allowedLength !== undefined && { dry_allowed_length: dry.allowedLength }),
  ...(dry.lastN !== undefined && { dry_penalty_last_n: dry.lastN }),
  ...(dry.breakers && { dry_sequence_breakers: dry.breakers }),
})

const toXtc = ({ probability, threshold }: ExcludeTop): object => ({
  xtc_probability: probability,
  xtc_threshold: threshold,
})

/** A text that looks like a number would be taken for a token id. */
function toLogitBias(pairs: NonNullable<Sampling['logitBias']>, { hasTextBias }: ServerFeatures): object {
  if (pairs.some(([token]) => typeof token === 'string' && !(hasTextBias && /^\D+$/.test(token))))
    throw unsupportedByUpstream('a bias for this text', 'sampling.logitBias')
  return Object.fromEntries(pairs)
}

function toFormat(format: OutputFormat, { constraints }: ServerFeatures): object {
  switch (format.type) {
    case 'json':
      return { response_format: { type: 'json_object' } }
    case 'json-schema':
      return {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'answer', schema: format.schema, strict: true },
        },
      }
    case 'grammar':
      if (constraints === 'grammar') return { grammar: format.source }
      if (constraints) return { structured_outputs: { grammar: format.source } }
      break
    case 'regex':
      if (constraints === 'structured_outputs') return { structured_outputs: { regex: format.pattern } }
      break
    case 'choice':
      if (constraints === 'structured_outputs') return { structured_outputs: { choice: format.choices } }
      break
  }
  throw unsupportedByUpstream(`an output constraint of the type ${format.type}`, 'format')
}
