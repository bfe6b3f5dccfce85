/** What is asked of a model, in nobody's dialect. */

export interface GenerateRequest {
  /** As the client wrote it: `llama3.2`, `team/model:tag`. */
  readonly model: string
  readonly input: ChatInput | TextInput | InfillInput
  /** Upper bound on generated tokens; the context size bounds it further. With 0 the prompt is read, and nothing said. */
  readonly maxTokens?: number
  /** The bound where neither the request nor the model's own parameters set one. */
  readonly defaultMaxTokens?: number
  /** Texts that end the answer; they are not part of it. At most 64, of at most 1,024 characters. */
  readonly stop?: readonly string[]
  readonly sampling?: Sampling
  /** What holds where neither `sampling` nor the model's own parameters say otherwise. */
  readonly defaultSampling?: Sampling
  /**
   * Whether a model that can think first, does; `auto`: its template decides. Given, its thoughts are told apart from its
   * text; absent, all is text, and the model's template decides, too.
   */
  readonly reasoning?: boolean | 'auto'
  /** What the answer is held to. With tools: what is said instead of a call; where a call is forced there is none. */
  readonly format?: OutputFormat
  /** How many of the likeliest tokens are told beside each that was drawn, at most 20; 0: that one alone. @default none is */
  readonly logprobs?: number
  /** The tokens of the prompt are told, too, with as many beside each. All of it is read for that, also what was before. */
  readonly promptLogprobs?: true
  /** A prompt that is longer than the context: refused, or its oldest messages are left out. @default 'error' */
  readonly overflow?: 'error' | 'truncate'
  readonly load?: LoadOptions
  /** Report prompt and answer as token ids at the end. */
  readonly returnTokens?: true
}

/** Any JSON object, the JSON that a schema allows, or what a grammar in llama.cpp's GBNF takes. */
export type OutputFormat =
  | { readonly type: 'json' }
  | { readonly type: 'json-schema'; readonly schema: object | boolean }
  | { readonly type: 'grammar'; readonly source: string }

/** How a model is loaded, where it is not. */
export interface LoadOptions {
  /** In tokens; a model that is loaded with another one is loaded anew. @default the engine's own, or as it is loaded where that is more */
  readonly contextSize?: number
  /**
   * So long it stays loaded when nobody uses it, in milliseconds. It holds until another call says otherwise.
   * @default the engine's own
   */
  readonly keepAlive?: number | 'forever'
}

export interface ChatInput {
  readonly kind: 'chat'
  /** A trailing assistant message is continued, in every dialect. */
  readonly messages: readonly Message[]
  /** What the model may call. */
  readonly tools?: readonly Tool[]
  readonly toolChoice?: ToolChoice
  /** In Go's template language, in place of the model's own. */
  readonly template?: string
  /** Variables for the model's template. */
  readonly templateOptions?: Readonly<Record<string, unknown>>
}

export interface Tool {
  /** No other tool of the request has it. */
  readonly name: string
  readonly description?: string
  /** JSON Schema of an object. */
  readonly parameters: object
  /** A schema that no grammar can keep is refused; else its arguments are any object. @default false */
  readonly strict?: boolean
  /** A breakpoint stands behind it. */
  readonly cache?: CacheLifetime
}

/**
 * How long what the model has read up to a breakpoint is kept for the next call, if nobody uses it: five minutes or an hour.
 * At most four a request. A prompt is ordered as tools, system messages, other messages, and a longer lifetime comes first.
 */
export type CacheLifetime = '5m' | '1h'

/** In milliseconds. */
export const cacheLifetimes = {
  '5m': 5 * 60_000,
  '1h': 60 * 60_000,
} as const satisfies Record<CacheLifetime, number>

export interface ToolChoice {
  readonly mode: 'auto' | 'none' | 'required'
  /** Only these may be called. @default all */
  readonly names?: readonly string[]
  /** `false`: at most one call an answer. */
  readonly parallel?: false
}

/** A prompt without a conversation. */
export interface TextInput {
  readonly kind: 'text'
  /**
   * Text and token ids, in order. The model's template makes a user's message of all the text, behind the
   * ids; those stay as they are.
   */
  readonly prompt: readonly (string | readonly number[])[]
  readonly system?: string
  /** Turns before it. @default those that the model begins every conversation with, where there are no ids */
  readonly messages?: readonly Message[]
  /** In Go's template language, in place of the model's own. `false` leaves out all: the model continues the text. */
  readonly template?: string | false
  /** Variables for the model's template. */
  readonly templateOptions?: Readonly<Record<string, unknown>>
}

/** A gap in a text, which the model fills. One that was not made for it refuses. */
export interface InfillInput {
  readonly kind: 'infill'
  readonly prefix: string
  readonly suffix: string
  /** In Go's template language, in place of the model's tokens for that. */
  readonly template?: string
}

export interface Message {
  /** Some templates know more roles than these four. */
  readonly role: 'system' | 'user' | 'assistant' | 'tool' | (string & {})
  readonly content: readonly Part[]
}

export type Part = {
  /** A breakpoint stands behind it. */
  readonly cache?: CacheLifetime
} & (
  | {
      /** `reasoning`: what the model thought before it said the rest. */
      readonly type: 'text' | 'reasoning'
      readonly text: string
    }
  | {
      readonly type: 'tool-call'
      readonly id: string
      readonly name: string
      /** JSON. */
      readonly arguments: string
    }
  | {
      readonly type: 'tool-result'
      /** Of the call; absent, its name or its place among the results says which. */
      readonly id?: string
      readonly name?: string
      readonly content: readonly Part[]
      readonly isError?: boolean
    }
)

export interface Sampling {
  /** 0 takes the likeliest token always, and so does less than a millionth. */
  readonly temperature?: number
  readonly topP?: number
  /** How many of the likeliest tokens stay in the draw; 0 keeps all. */
  readonly topK?: number
  readonly minP?: number
  /** Absent: a new one each time. `random`: the same, also where the model's recipe says one. */
  readonly seed?: number | 'random'
  /** 1 is none; from 0.01 to 100. */
  readonly repeatPenalty?: number
  /** How many tokens back it looks, as the other two do; 0 is none, -1 the whole context. @default 64 */
  readonly repeatLastN?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  /** Added to the logits of tokens, by id in this model's vocabulary; from -100 to 100. */
  readonly logitBias?: readonly (readonly [token: number, bias: number])[]
  readonly dry?: DryPenalty
  readonly xtc?: ExcludeTop
  /** The model does not end its answer: the limit does, the context or a stop sequence. @default false */
  readonly ignoreEos?: boolean
  /** So many tokens at least, unless a limit or a stop sequence ends them. @default 0 */
  readonly minTokens?: number
}

/** Against repetition ("don't repeat yourself"): what would go on with one is less likely, the more the longer it is. */
export interface DryPenalty {
  /** 0 is none. */
  readonly strength: number
  /** It grows by this factor with each token. @default 1.75 */
  readonly base?: number
  /** Repetitions of so many tokens are free. @default 2 */
  readonly allowedLength?: number
  /** How many tokens of the answer back it looks; 0 is none, -1 all of them. The prompt is not looked at. @default -1 */
  readonly lastN?: number
  /** No repetition goes beyond these texts. @default a new line, `:`, `"` and `*` */
  readonly breakers?: readonly string[]
}

/**
 * Exclude top choices (XTC): with this probability all tokens from this threshold up but the least likely of them are
 * left out of the draw. At temperature 0 it does nothing.
 */
export interface ExcludeTop {
  readonly probability: number
  /** Above 0.5 there is never more than one. */
  readonly threshold: number
}

/**
 * What no honest request exceeds. Numbers become 32-bit integers and floats in native code, where
 * larger ones wrap around or end as NaN, and the answer is noise.
 */
export const limits = {
  modelLength: 1_024,
  roleLength: 64,
  /** OpenAI takes 2,048; a context of a million tokens has room for more. */
  messages: 10_000,
  /** In one message. */
  parts: 10_000,
  /** As many as Anthropic takes. */
  breakpoints: 4,
  /** That are read into vectors or ranks by one call. OpenAI takes 2,048. */
  inputs: 10_000,
  /** OpenAI takes 128. */
  tools: 1_024,
  /** OpenAI takes 64, Anthropic 128. */
  toolNameLength: 128,
  /** A schema that an answer is held to, as JSON, in characters. No grammar is made of a larger one. */
  schemaLength: 1024 * 1024,
  /** A grammar, in characters. */
  grammarLength: 256 * 1024,
  /** One in Go’s language, in characters: the longest that models come with is a ninth of it. */
  templateLength: 64 * 1024,
  /** Of all messages together, in characters. */
  text: 64 * 1024 * 1024,
  /** Of a context, in tokens: the largest models are trained for ten million. */
  context: 2 ** 24,
  /** OpenAI takes 4, llama.cpp any number; but each is looked for in each piece of the answer. */
  stops: 64,
  stopLength: 1_024,
  temperature: 100,
  repeatPenalty: { min: 0.01, max: 100 },
  /** Of presence and frequency, to both sides. */
  penalty: 100,
  /** To both sides, as OpenAI takes it; it outweighs whatever a model says. */
  bias: 100,
  /** No vocabulary is larger. */
  biases: 300_000,
  dry: { strength: 100, base: 100 },
  /** Each is looked for in the whole vocabulary; of its bytes llama.cpp takes 40. */
  breakers: 8,
  breakerLength: 40,
  /** As many as OpenAI and Ollama tell. */
  logprobs: 20,
  int32: 2 ** 31 - 1,
} as const

/** By hand: a schema would take a second for a million of them. */
export const areTokens = (value: unknown): value is readonly number[] =>
  Array.isArray(value) &&
  value.length <= limits.context &&
  value.every((id) => Number.isInteger(id) && id >= 0 && id <= limits.int32)

/** Of all that is asked, in characters; a token that is given by its id is one. */
export const measureTextLength = (request: Pick<GenerateRequest, 'input'>): number =>
  measureInput(request, ({ length }) => length)

/** The same in bytes; a token has some four. */
export const measureTextBytes = (request: Pick<GenerateRequest, 'input'>): number =>
  measureInput(request, (text) => (typeof text === 'string' ? Buffer.byteLength(text) : 4 * text.length))

type Measure = (text: string | readonly number[]) => number

function measureInput({ input }: Pick<GenerateRequest, 'input'>, measure: Measure): number {
  if (input.kind === 'infill') return measure(input.prefix) + measure(input.suffix)
  const { messages = [] } = input
  const messagesSize = messages.reduce((sum, { content }) => sum + measureParts(content, measure), 0)
  if (input.kind === 'text')
    return input.prompt.reduce(
      (sum, piece) => sum + measure(piece),
      messagesSize + measure(input.system ?? ''),
    )
  return messagesSize + (input.tools?.length ? measure(JSON.stringify(input.tools)) : 0)
}

const measureParts = (content: readonly Part[], measure: Measure): number =>
  content.reduce((sum, part) => {
    if (part.type === 'tool-call') return sum + measure(part.name) + measure(part.arguments)
    return sum + (part.type === 'tool-result' ? measureParts(part.content, measure) : measure(part.text))
  }, 0)

/** Of the breakpoints, in the order of a prompt. */
export function lifetimesOf(input: GenerateRequest['input']): readonly CacheLifetime[] {
  if (input.kind !== 'chat') return []
  return [...(input.tools ?? []), ...input.messages.flatMap(({ content }) => content)].flatMap(
    ({ cache }) => cache ?? [],
  )
}

/** It goes to the model as it is, around its template. */
export const isRaw = (input: GenerateRequest['input']): boolean =>
  input.kind === 'infill' || (input.kind === 'text' && input.template === false)

/** What the model may call: none, some or all of the tools. */
export function callableTools(input: GenerateRequest['input']): readonly Tool[] {
  if (input.kind !== 'chat') return []
  const { tools = [], toolChoice: { mode = 'auto', names } = {} } = input
  return mode === 'none' ? [] : tools.filter(({ name }) => names?.includes(name) ?? true)
}

/** What the template is given: a conversation, or the one message that a text makes; of a gap, what is around it. */
export function toTemplateMessages(input: GenerateRequest['input']): readonly Message[] {
  if (input.kind === 'chat') return input.messages
  if (input.kind === 'infill') return [toTextMessage('user', input.prefix + input.suffix)]
  const text = input.prompt.filter((piece) => typeof piece === 'string').join('')
  return [
    ...(input.system ? [toTextMessage('system', input.system)] : []),
    ...(input.messages ?? []),
    toTextMessage('user', text),
  ]
}

const toTextMessage = (role: Message['role'], text: string): Message => ({
  role,
  content: [{ type: 'text', text }],
})
