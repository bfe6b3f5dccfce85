/** Request types of the engine contract, independent of any API dialect. */

export interface GenerateRequest {
  /** The name as the client wrote it: `llama3.2`, `team/model:tag`. */
  readonly model: string
  readonly input: ChatInput | TextInput | InfillInput
  /** Upper bound on generated tokens; the context size bounds it further. With 0 the prompt is evaluated and no token sampled. */
  readonly maxTokens?: number
  /** Applies when neither the request nor the Modelfile sets `maxTokens`. */
  readonly defaultMaxTokens?: number
  /** Stop sequences; they are not part of the output. At most 64, of at most 1,024 characters. */
  readonly stop?: readonly string[]
  readonly sampling?: Sampling
  /** Applies where neither `sampling` nor the Modelfile sets a field. */
  readonly defaultSampling?: Sampling
  /**
   * Turns reasoning on or off; `auto` uses the default of the chat template. Reasoning and text are then separate events.
   * Absent: the template's default, and reasoning is part of the text.
   */
  readonly reasoning?: boolean | 'auto'
  /** Output constraint. With tools it constrains the text instead of a call; with a forced call it is rejected. */
  readonly format?: OutputFormat
  /** How many of the likeliest tokens to report beside each sampled one, at most 20. 0 reports the sampled one alone. @default none */
  readonly logprobs?: number
  /** Reports prompt tokens, too, with as many alternatives. The whole prompt is evaluated for that, cached parts included. */
  readonly promptLogprobs?: true
  /** For a prompt longer than the context: reject it, or drop its oldest messages. @default 'error' */
  readonly overflow?: 'error' | 'truncate'
  readonly load?: LoadOptions
  /** Report prompt and output as token ids at the end. */
  readonly returnTokens?: true
}

/** Output constraint: any JSON object, JSON of a schema, or text of a grammar in llama.cpp's GBNF. */
export type OutputFormat =
  | { readonly type: 'json' }
  | { readonly type: 'json-schema'; readonly schema: object | boolean }
  | { readonly type: 'grammar'; readonly source: string }

/** How to load a model that is not loaded yet. */
export interface LoadOptions {
  /** In tokens. A model with another context size is loaded again. @default the engine's size, or the loaded one where that is larger */
  readonly contextSize?: number
  /**
   * How long an unused model stays loaded, in milliseconds. The value stays until another call sets one.
   * @default the engine's setting
   */
  readonly keepAlive?: number | 'forever'
}

export interface ChatInput {
  readonly kind: 'chat'
  /** The model continues a trailing assistant message, in every dialect. */
  readonly messages: readonly Message[]
  readonly tools?: readonly Tool[]
  readonly toolChoice?: ToolChoice
  /** In Go's template language; replaces the model's own. */
  readonly template?: string
  /** Variables for the model's template. */
  readonly templateOptions?: Readonly<Record<string, unknown>>
}

export interface Tool {
  /** Unique in the request. */
  readonly name: string
  readonly description?: string
  /** JSON Schema of an object. */
  readonly parameters: object
  /** Rejects a schema that no grammar can enforce. Without it, such a tool takes any object. @default false */
  readonly strict?: boolean
  /** Sets a cache breakpoint after the tool. */
  readonly cache?: CacheLifetime
}

/**
 * How long the prompt cache keeps the state up to a breakpoint after its last use. A request has at most four breakpoints.
 * A prompt is ordered as tools, system messages, other messages; longer lifetimes come first.
 */
export type CacheLifetime = '5m' | '1h'

/** In milliseconds. */
export const cacheLifetimes = {
  '5m': 5 * 60_000,
  '1h': 60 * 60_000,
} as const satisfies Record<CacheLifetime, number>

export interface ToolChoice {
  readonly mode: 'auto' | 'none' | 'required'
  /** The tools that may be called. @default all */
  readonly names?: readonly string[]
  /** `false`: at most one tool call per generation. */
  readonly parallel?: false
}

/** A prompt without a conversation. */
export interface TextInput {
  readonly kind: 'text'
  /** Text and token ids, in order. The template renders all text as one user message after the ids; ids stay as they are. */
  readonly prompt: readonly (string | readonly number[])[]
  readonly system?: string
  /** Earlier turns. @default the Modelfile's messages, when the prompt has no ids */
  readonly messages?: readonly Message[]
  /** In Go's template language; replaces the model's own. `false`: no template, the model continues the text. */
  readonly template?: string | false
  /** Variables for the model's template. */
  readonly templateOptions?: Readonly<Record<string, unknown>>
}

/** A gap for the model to fill. A model without infill tokens rejects it. */
export interface InfillInput {
  readonly kind: 'infill'
  readonly prefix: string
  readonly suffix: string
  /** In Go's template language; replaces the model's infill tokens. */
  readonly template?: string
}

export interface Message {
  /** Some templates know more roles than these four. */
  readonly role: 'system' | 'user' | 'assistant' | 'tool' | (string & {})
  readonly content: readonly Part[]
}

export type Part = {
  /** Sets a cache breakpoint after the part. */
  readonly cache?: CacheLifetime
} & (
  | {
      /** `reasoning`: the model's reasoning before its text. */
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
      /** The id of the call. When absent, the name or the position among the results identifies the call. */
      readonly id?: string
      readonly name?: string
      readonly content: readonly Part[]
      readonly isError?: boolean
    }
)

export interface Sampling {
  /** Greedy at 0 and below 1e-6. */
  readonly temperature?: number
  readonly topP?: number
  /** How many of the likeliest tokens to sample from; 0 keeps all. */
  readonly topK?: number
  readonly minP?: number
  /** Absent: the Modelfile's seed, or a random one. `random`: a random one in any case. */
  readonly seed?: number | 'random'
  /** From 0.01 to 100; 1 turns it off. */
  readonly repeatPenalty?: number
  /** How many tokens the three penalties look back; 0 is none, -1 the whole context. @default 64 */
  readonly repeatLastN?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  /** Added to the logits of tokens, by id in this model's vocabulary; from -100 to 100. */
  readonly logitBias?: readonly (readonly [token: number, bias: number])[]
  readonly dry?: DryPenalty
  readonly xtc?: ExcludeTop
  /** Bans the end-of-sequence token: only a limit, the context or a stop sequence ends the output. @default false */
  readonly ignoreEos?: boolean
  /** Minimum of generated tokens; limits and stop sequences still apply. @default 0 */
  readonly minTokens?: number
}

/** DRY penalty ("don't repeat yourself"): a token that would extend a repetition becomes less likely, growing with its length. */
export interface DryPenalty {
  /** 0 turns it off. */
  readonly strength: number
  /** Growth factor per token. @default 1.75 */
  readonly base?: number
  /** Repetitions up to this length, in tokens, are free. @default 2 */
  readonly allowedLength?: number
  /** How many generated tokens it looks back; 0 is none, -1 all. The prompt does not count. @default -1 */
  readonly lastN?: number
  /** Texts that end a repetition. @default a new line, `:`, `"` and `*` */
  readonly breakers?: readonly string[]
}

/**
 * Exclude top choices (XTC): with this probability, all tokens at or above the threshold but the least likely of them are
 * excluded. Without effect at temperature 0.
 */
export interface ExcludeTop {
  readonly probability: number
  /** Above 0.5 at most one token reaches it, so that nothing is excluded. */
  readonly threshold: number
}
