/**
 * Request schemas. Unknown fields are ignored, since clients of other local servers send many of them.
 * Known fields that are not implemented are rejected, and the error names the field.
 * Shape: OpenAI API reference, "Create chat completion" and "Create completion".
 */
import { z } from 'zod'
import { areTokens, limits } from '../../engine/request-limits.ts'
import { progressFields } from '../answer-progress.ts'
import { integerFrom, isEmpty, optional, StopSequence, unsupportedUnless } from '../fields.ts'
import { list } from '../parse.ts'
import { maxChoices } from './choices.ts'
import { constraintFields } from './extensions/constraint-fields.ts'
import { otherChatFields, otherFields, otherTextFields, reasoningFields } from './extensions/other-fields.ts'
import { promptEndFields } from './extensions/prompt-end.ts'
import { localServerFields } from './extensions/sampling-fields.ts'
import { ResponseFormat } from './formats.ts'
import { LogitBias } from './logit-bias.ts'
import { Messages } from './messages.ts'
import { toolFields } from './tools.ts'

/** OpenAI's maximum number of prompts, or of texts to embed, in one request. */
const maxInputs = 2_048

const tokenCount = integerFrom(1)

/** A 64-bit integer, as in OpenAI's API. It is reduced to 53 bits, so equal seeds stay equal. */
const Seed = z
  .number()
  .refine(Number.isInteger, { params: { issue: 'type' }, error: 'expected a whole number.' })
  .refine((value) => value >= -(2 ** 63), {
    params: { issue: 'integer_too_small' },
    error: 'expected a whole number of 64 bits.',
  })
  .refine((value) => value <= 2 ** 63, {
    params: { issue: 'integer_too_big' },
    error: 'expected a whole number of 64 bits.',
  })
  .transform((value) => value % 2 ** 53)

/** Predecessor of `tool_choice`. */
const FunctionCall = z.union([z.enum(['none', 'auto']), z.looseObject({})], {
  error: "expected 'none', 'auto' or an object.",
})

/** Fields of all requests that generate text. */
export const generationFields = {
  model: z.string().min(1).max(limits.modelLength),
  stream: optional(z.boolean()),
  stream_options: optional(z.object({ include_usage: optional(z.boolean()) })),
  temperature: optional(z.number().min(0).max(2)),
  top_p: optional(z.number().min(0).max(1)),
  stop: optional(
    z.union([StopSequence, list(StopSequence, { max: limits.stops })], {
      error: 'expected a text or a list of texts.',
    }),
  ),
  seed: optional(Seed),
  frequency_penalty: optional(z.number().min(-2).max(2)),
  presence_penalty: optional(z.number().min(-2).max(2)),
  logit_bias: optional(LogitBias),
  // Extensions of other local servers.
  top_k: optional(integerFrom(0, limits.int32)),
  min_p: optional(z.number().min(0).max(1)),
  // The name of `max_tokens` in llama.cpp's server, where it takes precedence. -1 means no limit.
  n_predict: optional(integerFrom(-1)),
  ...localServerFields,
  ...constraintFields,
  ...progressFields,
  ...otherFields,

  /** Predecessor of `safety_identifier`, which takes precedence. */
  user: optional(z.string()),
  safety_identifier: optional(z.string()),
}
export type GenerationFields = z.output<z.ZodObject<typeof generationFields>>

/** Reasoning effort. Models without such a setting ignore it. */
export const Effort = z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])

export const ChatCompletionRequest = z
  .object({
    ...generationFields,
    ...toolFields,
    ...promptEndFields,
    ...otherChatFields,
    ...reasoningFields,
    messages: Messages,
    n: optional(integerFrom(1, maxChoices)),
    max_completion_tokens: optional(tokenCount),
    // Other local servers accept -1 as "no limit", and their users send it.
    max_tokens: z.preprocess((value) => (value === -1 ? undefined : value), optional(tokenCount)),
    reasoning_effort: optional(Effort),
    response_format: optional(ResponseFormat),
    logprobs: optional(z.boolean()),
    top_logprobs: optional(integerFrom(0, 20)),
    // Extension of other local servers: variables of the chat template.
    chat_template_kwargs: optional(z.looseObject({})),

    functions: unsupportedUnless(z.array(z.unknown()), '`functions`', isEmpty),
    function_call: unsupportedUnless(
      FunctionCall,
      '`function_call`',
      (value) => value === 'none' || value === 'auto',
    ),
    modalities: unsupportedUnless(
      list(z.enum(['text', 'audio']), { max: 10 }),
      'Output other than text',
      (value) => value.every((one) => one === 'text'),
    ),
  })
  .refine(({ logprobs, top_logprobs }) => logprobs || !top_logprobs, {
    path: ['top_logprobs'],
    params: { issue: 'value' },
    error: "it requires 'logprobs'.",
  })
export type ChatCompletionRequest = z.output<typeof ChatCompletionRequest>

const Tokens = z
  .custom<readonly number[]>(areTokens, { params: { issue: 'type' }, error: 'expected text or token ids.' })
  .refine(({ length }) => length > 0, { params: { issue: 'empty' }, error: 'expected at least one token.' })

/** One or more inputs, each a text or token ids. A list of numbers is one input. */
export const textsOrTokens = (Text: z.ZodString) =>
  z
    .union([Text, list(z.union([Text, Tokens]), { min: 1, max: maxInputs }), Tokens], {
      error: 'expected text or token ids, or a list of them.',
    })
    .transform((given): readonly (string | readonly number[])[] =>
      typeof given === 'string' || isTokens(given) ? [given] : given,
    )
const isTokens = (given: readonly unknown[]): given is readonly number[] => typeof given[0] === 'number'

/** A prompt as a list of texts and token ids, in order. */
const Pieces = z
  .custom<readonly (string | number)[]>(
    (value) => Array.isArray(value) && areTokens(value.filter((piece) => typeof piece !== 'string')),
    { params: { issue: 'type' }, error: 'expected text or token ids.' },
  )
  .refine(({ length }) => length > 0, { params: { issue: 'empty' }, error: 'expected at least one token.' })
  .transform(joinTokens)

/** Joins adjacent token ids into one list. */
function joinTokens(pieces: readonly (string | number)[]): readonly (string | readonly number[])[] {
  const joined: (string | number[])[] = []
  for (const piece of pieces) {
    const last = joined.at(-1)
    if (typeof piece === 'string') joined.push(piece)
    else if (Array.isArray(last)) last.push(piece)
    else joined.push([piece])
  }
  return joined
}

/** One or more prompts. A list with a number is one prompt, of token ids and texts. */
const Prompts = z.preprocess(
  (given) =>
    typeof given === 'string' || (Array.isArray(given) && given.some((one) => typeof one === 'number'))
      ? [given]
      : given,
  list(z.union([z.string().transform((text) => [text]), Pieces], { error: 'expected text or token ids.' }), {
    min: 1,
    max: maxInputs,
  }),
)

export const CompletionRequest = z
  .object({
    ...generationFields,
    ...otherTextFields,
    prompt: Prompts,
    // -1 means "no limit", as in chat completions.
    max_tokens: optional(integerFrom(-1)),
    suffix: optional(z.string()),
    echo: optional(z.boolean()),
    logprobs: optional(integerFrom(0, limits.logprobs)),
    response_format: optional(ResponseFormat),
    n: optional(integerFrom(1, maxChoices)),
    best_of: optional(integerFrom(1, maxChoices)),
  })
  .refine(({ max_tokens, echo }) => max_tokens !== 0 || echo, {
    path: ['max_tokens'],
    params: { issue: 'integer_too_small' },
    error: "expected a whole number from 1 up, or 0 together with 'echo'.",
  })
  .refine(({ n = 1, best_of: answers = n }) => answers >= n, {
    path: ['best_of'],
    params: { issue: 'integer_too_small' },
    error: "expected at least the number of 'n'.",
  })
  .refine(({ n = 1, best_of: answers = n, stream }) => answers === n || !stream, {
    path: ['best_of'],
    params: { issue: 'value' },
    error: "with 'stream', it cannot be more than 'n'.",
  })
  .refine((body) => body.prompt.length * answersPerPrompt(body) <= maxInputs, {
    path: ['n'],
    params: { issue: 'integer_too_big' },
    error: `expected at most ${maxInputs} answers in total.`,
  })
export type CompletionRequest = z.output<typeof CompletionRequest>

/** Number of answers to generate for each prompt. */
export const answersPerPrompt = ({
  n = 1,
  best_of: answers = n,
}: {
  readonly n?: number | undefined
  readonly best_of?: number | undefined
}): number => answers
