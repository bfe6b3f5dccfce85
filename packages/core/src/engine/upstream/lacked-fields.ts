/** Rejects fields of a request that the API of an upstream server lacks. A value that changes nothing passes. */
import { isRecord } from '../../util/is-record.ts'
import { tryParseJson } from '../../util/try-parse-json.ts'
import type { GenerateRequest } from '../request.ts'
import { isContinuable } from '../request-input.ts'
import { unsupportedByUpstream } from './upstream-errors.ts'

type LackedFieldCheck = readonly [what: string, isUsed: (request: GenerateRequest) => boolean]

const checks = {
  'sampling.topK': ['top-k sampling', ({ sampling }) => !!sampling?.topK],
  'sampling.minP': ['min-p sampling', ({ sampling }) => !!sampling?.minP],
  'sampling.seed': ['a seed', ({ sampling }) => typeof sampling?.seed === 'number'],
  'sampling.repeatPenalty': ['a repeat penalty', ({ sampling }) => (sampling?.repeatPenalty ?? 1) !== 1],
  'sampling.presencePenalty': ['a presence penalty', ({ sampling }) => !!sampling?.presencePenalty],
  'sampling.frequencyPenalty': ['a frequency penalty', ({ sampling }) => !!sampling?.frequencyPenalty],
  'sampling.logitBias': ['logit biases', ({ sampling }) => !!sampling?.logitBias?.length],
  'sampling.dry': ['the DRY penalty', ({ sampling }) => !!sampling?.dry?.strength],
  'sampling.xtc': ['XTC sampling', ({ sampling }) => !!sampling?.xtc?.probability],
  'sampling.ignoreEos': ['answers without an end', ({ sampling }) => !!sampling?.ignoreEos],
  'sampling.minTokens': ['a minimum number of tokens', ({ sampling }) => !!sampling?.minTokens],
  logprobs: ['log probabilities', ({ logprobs }) => logprobs !== undefined],
  promptLogprobs: ['log probabilities of the prompt', ({ promptLogprobs }) => !!promptLogprobs],
  template: ['a template in the request', ({ input }) => typeof input.template === 'string'],
  promptEnd: ['this end of the prompt', hasUnusualEnd],
} as const satisfies Record<string, LackedFieldCheck>

export type LackedField = keyof typeof checks

/** Throws an `LlmError` `invalid_request` that names the first of these fields that the request uses. */
export function rejectFields(request: GenerateRequest, lacked: readonly LackedField[]): void {
  for (const field of lacked) {
    const [what, isUsed] = checks[field] as LackedFieldCheck
    if (isUsed(request)) throw unsupportedByUpstream(what, field)
  }
}

/** Servers continue a message of the assistant at the end, and begin a new one after any other. */
function hasUnusualEnd({ input }: GenerateRequest): boolean {
  if (input.kind !== 'chat' || input.promptEnd === undefined) return false
  return input.promptEnd !== (isContinuable(input.messages) ? 'continue' : 'generation-prompt')
}

/**
 * Returns the reasoning effort that the request names among its variables for the template. Throws an `LlmError`
 * `invalid_request` for another variable, and for an effort that the API lacks.
 */
export function readEffort<Effort extends string>(
  { input, reasoning }: Pick<GenerateRequest, 'input' | 'reasoning'>,
  efforts: readonly Effort[],
): Effort | undefined {
  const { templateOptions = {} } = input.kind === 'infill' ? {} : input
  for (const [name, value] of Object.entries(templateOptions)) {
    // `reasoning` says the same.
    if (value === undefined || (name === 'enable_thinking' && value === reasoning)) continue
    if (name !== 'reasoning_effort' || !efforts.includes(value as Effort))
      throw unsupportedByUpstream(
        name === 'reasoning_effort' ? 'this reasoning effort' : 'variables for its template',
        `templateOptions.${name.slice(0, maxNameLength)}`,
      )
  }
  return templateOptions.reasoning_effort as Effort | undefined
}

/**
 * Parses the arguments of a tool call for an API that has them as an object. Throws an `LlmError` `invalid_request` for
 * others, which models write.
 *
 * @param param path of the message
 */
export function parseArguments(json: string, param: string): object {
  const values = tryParseJson(json)
  if (isRecord(values)) return values
  throw unsupportedByUpstream('a tool call whose arguments are no JSON object', param)
}

/** Characters of a variable's name that errors repeat. */
const maxNameLength = 64
