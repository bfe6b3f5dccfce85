/**
 * Request shapes. Unknown fields are ignored, as clients of other local servers send many;
 * known ones that are not built yet are refused by name, never ignored.
 * Shape: OpenAI API reference, "Create chat completion".
 */
import { z } from 'zod'
import { limits } from '../../engine/request.ts'
import type { Issue } from '../../errors.ts'
import { isEmpty, notYet, optional, StopSequence, unsupported, whole } from '../fields.ts'
import { list } from '../parse.ts'
import { localOptions } from './local-options.ts'

const TextPart = z.object({ type: z.literal('text'), text: z.string() })
const OtherPart = z
  .object({ type: z.enum(['image_url', 'input_audio', 'file', 'refusal']) })
  .refine(() => false, {
    params: { issue: 'unsupported' },
    error: 'only text is supported yet.',
  })
const Part = z.discriminatedUnion('type', [TextPart, OtherPart])
const Content = z.union([z.string(), list(Part, { min: 1, max: limits.parts })], {
  error: 'expected a string or an array of parts.',
})

const Message = z.discriminatedUnion(
  'role',
  [
    z.object({ role: z.enum(['system', 'developer', 'user']), content: Content }),
    z.object({
      role: z.literal('assistant'),
      content: optional(Content),
      tool_calls: notYet(z.array(z.unknown()), 'A tool call', isEmpty),
      function_call: notYet(z.looseObject({}), 'A function call', () => false),
    }),
    z
      .object({ role: z.enum(['tool', 'function']) })
      .refine(() => false, { path: ['role'], ...unsupported('This role') }),
  ],
  { error: 'expected a message of the role system, developer, user or assistant.' },
)
/** As it leaves the schema: what is refused there cannot come. */
export interface Message {
  readonly role: 'system' | 'developer' | 'user' | 'assistant'
  readonly content?: string | readonly z.output<typeof TextPart>[] | undefined
}

const tokenCount = whole(1)

/** OpenAI's have 64 bits. A JSON number keeps 53 of them: the same seed stays the same. */
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

/** A word, or which one. */
const ToolChoice = z.union([z.enum(['none', 'auto', 'required']), z.looseObject({})], {
  error: "expected 'none', 'auto', 'required' or an object.",
})

/** By hand: zod would list hundreds of thousands of wrong entries. */
const LogitBias = z
  .custom<Readonly<Record<string, unknown>>>((value) => typeof value === 'object' && !Array.isArray(value), {
    params: { issue: 'type' },
    error: 'expected an object of token ids and numbers.',
  })
  .refine((given) => Object.keys(given).length <= limits.biases, `expected at most ${limits.biases} entries.`)
  .superRefine((given, context) => {
    for (const [token, bias] of Object.entries(given)) {
      const wrong = wrongBias(token, bias)
      if (!wrong) continue
      const [issue, message] = wrong
      context.addIssue({ code: 'custom', path: [token], params: { issue }, message })
      return
    }
  })
  .transform((given) => given as Readonly<Record<string, number>>)

function wrongBias(token: string, bias: unknown): readonly [issue: Issue, message: string] | undefined {
  if (!/^\d{1,10}$/.test(token) || Number(token) > limits.int32)
    return ['value', 'a key has to be the id of a token.']
  if (typeof bias !== 'number' || !Number.isFinite(bias)) return ['type', 'expected a number.']
  if (bias > limits.bias) return ['decimal_too_big', `expected a number up to ${limits.bias}.`]
  if (bias < -limits.bias) return ['decimal_too_small', `expected a number from -${limits.bias} up.`]
  return undefined
}

export const ChatCompletionRequest = z.object({
  model: z.string().min(1).max(limits.modelLength),
  messages: list(Message, { min: 1, max: limits.messages }),
  stream: optional(z.boolean()),
  stream_options: optional(z.object({ include_usage: optional(z.boolean()) })),
  max_completion_tokens: optional(tokenCount),
  // Other local servers take -1 as "no limit", and their users send it.
  max_tokens: z.preprocess((value) => (value === -1 ? undefined : value), optional(tokenCount)),
  temperature: optional(z.number().min(0).max(2)),
  top_p: optional(z.number().min(0).max(1)),
  // A hint: models without a switch for it do as they always do.
  reasoning_effort: optional(z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])),
  stop: optional(z.union([StopSequence, list(StopSequence, { max: limits.stops })])),
  seed: optional(Seed),
  frequency_penalty: optional(z.number().min(-2).max(2)),
  presence_penalty: optional(z.number().min(-2).max(2)),
  logit_bias: optional(LogitBias),
  // Not OpenAI's, but understood by the other local servers.
  top_k: optional(whole(0, limits.int32)),
  min_p: optional(z.number().min(0).max(1)),
  repeat_penalty: optional(z.number().min(limits.repeatPenalty.min).max(limits.repeatPenalty.max)),
  ...localOptions,

  n: notYet(whole(1, 128), 'More than one choice', (value) => value === 1),
  logprobs: notYet(z.boolean(), '`logprobs`', (value) => !value),
  top_logprobs: notYet(whole(0, 20), '`top_logprobs`', (value) => value === 0),
  response_format: notYet(
    z.object({ type: z.enum(['text', 'json_object', 'json_schema']) }),
    'A response format',
    ({ type }) => type === 'text',
  ),
  tools: notYet(z.array(z.unknown()), '`tools`', isEmpty),
  tool_choice: notYet(ToolChoice, '`tool_choice`', (value) => value === 'none' || value === 'auto'),
  functions: notYet(z.array(z.unknown()), '`functions`', isEmpty),
  function_call: notYet(ToolChoice, '`function_call`', (value) => value === 'none' || value === 'auto'),
  modalities: notYet(list(z.enum(['text', 'audio']), { max: 10 }), 'Output other than text', (value) =>
    value.every((one) => one === 'text'),
  ),
})
export type ChatCompletionRequest = z.output<typeof ChatCompletionRequest>
