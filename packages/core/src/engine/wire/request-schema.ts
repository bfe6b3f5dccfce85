/** Schemas of the requests that reach the native code. */
import { z } from 'zod'
import type { GenerateRequest, Message } from '../request.ts'
import { callableTools, isContinuable, lifetimesOf } from '../request-input.ts'
import { areTokens, limits } from '../request-limits.ts'

const contextSize = z.int().min(16).max(limits.context).optional()
const LoadOptions = z.object({
  contextSize,
  defaultContextSize: contextSize,
  keepAlive: z.union([z.number().min(0), z.literal('forever')]).optional(),
})

/** Replaces lone surrogates. They have no UTF-8 form, and each tokenizer treats them differently. */
const wellFormed = (value: string): string => value.toWellFormed()
const number = z.number()
const symmetricRange = (limit: number) => number.min(-limit).max(limit)
const Sampling = z.object({
  temperature: number
    .min(0)
    .max(limits.temperature)
    // Division by a smaller temperature makes logits infinite, and the output would be noise.
    .transform((value) => (value < 1e-6 ? 0 : value))
    .optional(),
  topP: number.min(0).max(1).optional(),
  topK: z.int().min(0).max(limits.int32).optional(),
  minP: number.min(0).max(1).optional(),
  seed: z.union([z.int(), z.literal('random')]).optional(),
  repeatPenalty: number.min(limits.repeatPenalty.min).max(limits.repeatPenalty.max).optional(),
  repeatLastN: z.int().min(-1).max(limits.int32).optional(),
  presencePenalty: symmetricRange(limits.penalty).optional(),
  frequencyPenalty: symmetricRange(limits.penalty).optional(),
  logitBias: z
    .array(
      z.tuple([
        z.union([
          z.int().min(0).max(limits.int32),
          z.string().min(1).max(limits.biasTextLength).transform(wellFormed),
        ]),
        symmetricRange(limits.bias),
      ]),
    )
    .max(limits.biases)
    .refine(
      (pairs) => pairs.filter(([token]) => typeof token === 'string').length <= limits.biasTexts,
      `has more than ${limits.biasTexts} texts.`,
    )
    .optional(),
  dry: z
    .object({
      strength: number.min(0).max(limits.dry.strength),
      base: number.min(1).max(limits.dry.base).optional(),
      allowedLength: z.int().min(1).max(limits.int32).optional(),
      lastN: z.int().min(-1).max(limits.int32).optional(),
      breakers: z
        .array(z.string().min(1).max(limits.breakerLength).transform(wellFormed))
        .max(limits.breakers)
        .optional(),
    })
    .optional(),
  xtc: z.object({ probability: number.min(0).max(1), threshold: number.min(0).max(1) }).optional(),
  ignoreEos: z.boolean().optional(),
  minTokens: z.int().min(0).max(limits.int32).optional(),
})

const text = z.string().transform(wellFormed)

const cache = z.enum(['5m', '1h']).optional()
const TextPart = z.object({ type: z.enum(['text', 'reasoning']), text, cache })
const ImagePart = z.object({
  ...{ type: z.literal('image'), mediaType: z.string(), data: z.string(), cache },
  ...{ param: text.optional(), replacement: text.optional() },
})
const ToolCallPart = z.object({ type: z.literal('tool-call'), id: text, name: text, arguments: text, cache })
const toolResultPart = <Content extends z.ZodType>(content: Content) =>
  z.object({
    type: z.literal('tool-result'),
    id: text.optional(),
    name: text.optional(),
    content: z.array(content).max(limits.parts),
    isError: z.boolean().optional(),
    cache,
  })
const PartWithoutImages = z.discriminatedUnion('type', [TextPart, ToolCallPart, toolResultPart(TextPart)])
const AnyPart = z.discriminatedUnion('type', [
  TextPart,
  ImagePart,
  ToolCallPart,
  toolResultPart(z.discriminatedUnion('type', [TextPart, ImagePart])),
])
const Tool = z.object({
  cache,
  name: z.string().min(1).max(limits.toolNameLength).transform(wellFormed),
  description: text.optional(),
  parameters: z.record(z.string(), z.unknown()),
  strict: z.boolean().optional(),
})

const toMessages = (part: z.ZodType) =>
  z
    .array(
      z.object({
        role: z.string().min(1).max(limits.roleLength).transform(wellFormed),
        content: z.array(part).max(limits.parts),
      }),
    )
    .max(limits.messages)
/** Source of a Go template. */
const Template = z.string().max(limits.templateLength).transform(wellFormed)

const toChatInput = (messages: ReturnType<typeof toMessages>) =>
  z
    .object({
      kind: z.literal('chat'),
      messages: messages.min(1),
      promptEnd: z.enum(['continue', 'generation-prompt', 'none']).optional(),
      tools: z.array(Tool).max(limits.tools).optional(),
      toolChoice: z
        .object({
          mode: z.enum(['auto', 'none', 'required']),
          names: z.array(text).max(limits.tools).optional(),
          parallel: z.literal(false).optional(),
        })
        .optional(),
      template: Template.optional(),
      templateOptions: z.record(z.string(), z.unknown()).optional(),
    })
    .refine(({ tools = [] }) => new Set(tools.map(({ name }) => name)).size === tools.length, {
      path: ['tools'],
      error: 'tool names must be unique.',
    })
    .refine(
      ({ tools = [], toolChoice }) =>
        toolChoice?.names?.every((chosen) => tools.some(({ name }) => name === chosen)) ?? true,
      { path: ['toolChoice', 'names'], error: 'expected names of the given tools.' },
    )
    .refine(
      ({ messages, promptEnd }) => promptEnd !== 'continue' || isContinuable(messages as readonly Message[]),
      {
        path: ['promptEnd'],
        error: 'only an assistant message without tool calls can be continued.',
      },
    )
    .refine((input) => lifetimesOf(input as GenerateRequest['input']).length <= limits.breakpoints, {
      path: ['messages'],
      error: `messages and tools have more than ${limits.breakpoints} breakpoints.`,
    })
    .refine(
      (input) =>
        input.toolChoice?.mode !== 'required' ||
        callableTools(input as Extract<GenerateRequest['input'], { kind: 'chat' }>).length > 0,
      {
        path: ['toolChoice', 'mode'],
        error: "'required' needs a tool that may be called.",
      },
    )
const toTextInput = (messages: ReturnType<typeof toMessages>) =>
  z.object({
    kind: z.literal('text'),
    prompt: z
      .array(z.union([text, z.custom<readonly number[]>(areTokens)], 'expected text or token ids.'))
      .max(limits.parts),
    system: text.optional(),
    messages: messages.optional(),
    template: z.union([z.literal(false), Template]).optional(),
    templateOptions: z.record(z.string(), z.unknown()).optional(),
  })

const InfillInput = z.object({
  kind: z.literal('infill'),
  prefix: text,
  suffix: text,
  template: Template.optional(),
})

const Format = z.discriminatedUnion('type', [
  z.object({ type: z.literal('json') }),
  z.object({
    type: z.literal('json-schema'),
    schema: z
      .union([z.boolean(), z.record(z.string(), z.unknown())])
      .refine(
        (schema) => jsonLength(schema) <= limits.schemaLength,
        `is longer than ${limits.schemaLength} characters.`,
      ),
  }),
  z.object({ type: z.literal('grammar'), source: z.string().min(1).max(limits.grammarLength) }),
  // The compiler of the pattern limits its length.
  z.object({ type: z.literal('regex'), pattern: z.string().min(1) }),
  z.object({
    type: z.literal('choice'),
    choices: z
      .array(z.string().min(1).max(limits.choiceLength).transform(wellFormed))
      .min(1)
      .max(limits.choices),
  }),
])

/** Length of a value as JSON text. Infinite for a value that JSON cannot represent. */
function jsonLength(value: unknown): number {
  try {
    return JSON.stringify(value).length
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

const forcesToolCall = (input: GenerateRequest['input']): boolean =>
  input.kind === 'chat' && input.toolChoice?.mode === 'required'

const toGenerateSchema = (input: z.ZodType) =>
  z
    .object({
      model: z.string(),
      input,
      maxTokens: z.int().min(0).optional(),
      stop: z
        .array(
          z
            .string()
            .min(1)
            .max(limits.stopLength)
            .refine((text) => text.isWellFormed(), 'contains a lone surrogate.'),
        )
        .max(limits.stops)
        .optional(),
      sampling: Sampling.optional(),
      reasoning: z.union([z.boolean(), z.literal('auto')]).optional(),
      format: Format.optional(),
      logprobs: z.int().min(0).max(limits.logprobs).optional(),
      promptLogprobs: z.literal(true).optional(),
      overflow: z.enum(['error', 'truncate']).optional(),
      load: LoadOptions.optional(),
      returnTokens: z.literal(true).optional(),
      returnProgress: z.literal(true).optional(),
      returnTimings: z.literal(true).optional(),
    })
    .refine(({ format, input }) => !format || !forcesToolCall(input as GenerateRequest['input']), {
      path: ['format'],
      error: 'cannot be combined with a forced tool call.',
    })
    .refine(({ logprobs, promptLogprobs }) => !promptLogprobs || logprobs !== undefined, {
      path: ['promptLogprobs'],
      error: "requires 'logprobs'.",
    })

const messages = toMessages(PartWithoutImages)
/** Protects the native code from invalid requests of dialects and in-process callers. */
export const GenerateSchema = toGenerateSchema(
  z.discriminatedUnion('kind', [toChatInput(messages), toTextInput(messages), InfillInput]),
)

const messagesWithImages = toMessages(AnyPart)
/** Requests between apps. The model may run behind the other app, and see images. */
export const ForwardedGenerateSchema = toGenerateSchema(
  z.discriminatedUnion('kind', [
    toChatInput(messagesWithImages),
    toTextInput(messagesWithImages).extend({ images: z.array(ImagePart).max(limits.parts).optional() }),
    InfillInput,
  ]),
)

export const tokenIds = z.custom<readonly number[]>(areTokens, 'expected token ids.')
const isNonEmpty = ({ length }: { readonly length: number }): boolean => length > 0
const nonEmptyText = text.refine(isNonEmpty, 'must not be empty.')
const embedInput = z
  .union([text, tokenIds], 'expected text or token ids.')
  .refine(isNonEmpty, 'must not be empty.')
const modelFields = { model: z.string(), load: LoadOptions.optional() }
const overflow = z.enum(['error', 'truncate']).optional()

export const EmbedSchema = z.object({
  ...modelFields,
  inputs: z.array(embedInput).max(limits.inputs),
  overflow,
  dimensions: z.int().min(1).max(limits.int32).optional(),
})
export const RerankSchema = z.object({
  ...modelFields,
  query: nonEmptyText,
  documents: z.array(nonEmptyText).max(limits.inputs),
  overflow,
})
const flag = z.boolean().optional()
export const TokenizeSchema = z.object({ ...modelFields, text, addSpecial: flag, parseSpecial: flag })
export const DetokenizeSchema = z.object({ ...modelFields, tokens: tokenIds })
export const ModelSchema = z.object(modelFields)
