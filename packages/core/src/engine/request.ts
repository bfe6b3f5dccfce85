/** Request types of the engine contract, independent of any API dialect. */

/** One answer that an engine generates. */
export interface GenerateRequest {
  /** The name as the client wrote it, such as `llama3.2` or `team/model:tag`. */
  readonly model: string
  /** The conversation, the plain prompt, or the text with a gap. */
  readonly input: ChatInput | TextInput | InfillInput
  /**
   * Maximum number of generated tokens. The context size limits it further. With 0, only the prompt is
   * evaluated. 2,147,483,647 means no maximum, not even that of the Modelfile.
   *
   * @default that of the Modelfile, else `defaultMaxTokens`, else as many as fit into the context
   */
  readonly maxTokens?: number
  /**
   * Maximum number of generated tokens when neither the request nor the Modelfile sets `maxTokens`.
   *
   * @default none
   */
  readonly defaultMaxTokens?: number
  /**
   * Stop sequences, at most 64 of 1,024 characters each. The output does not include them.
   *
   * @default those of the Modelfile
   */
  readonly stop?: readonly string[]
  /** How tokens are chosen. @default those of the Modelfile, else `defaultSampling` */
  readonly sampling?: Sampling
  /** Applies where neither `sampling` nor the Modelfile sets a field. @default the default of each field */
  readonly defaultSampling?: Sampling
  /**
   * Turns reasoning on or off. `auto` keeps the chat template's default. With any of these values, reasoning
   * and text are separate events. If absent, the template's default applies and reasoning is part of the
   * text.
   */
  readonly reasoning?: boolean | 'auto'
  /**
   * Output constraint. With tools, it applies to text and not to tool calls. The engine rejects a constraint
   * together with a forced tool call.
   *
   * @default none: any text
   */
  readonly format?: OutputFormat
  /**
   * Number of likeliest tokens to report with each sampled token, at most 20. With 0, only the logprob of the
   * sampled token is reported.
   * @default no logprobs
   */
  readonly logprobs?: number
  /**
   * Also reports the logprobs of the prompt tokens. Requires `logprobs`. The whole prompt is then evaluated,
   * cached parts included.
   *
   * @default not reported
   */
  readonly promptLogprobs?: true
  /**
   * `error` rejects a prompt that is longer than the context. `truncate` drops the oldest messages of a chat.
   * @default 'error'
   */
  readonly overflow?: 'error' | 'truncate'
  /** How the model is loaded. @default the settings of the app */
  readonly load?: LoadOptions
  /** Reports the token ids of prompt and output in the `end` event. @default not reported */
  readonly returnTokens?: true
  /**
   * Reports how far the load of the model and the evaluation of the prompt have come, in `progress` events.
   *
   * @default not reported
   */
  readonly returnProgress?: true
  /** Reports the times so far in each event with a piece of the output. @default not reported */
  readonly returnTimings?: true
}

/**
 * Output constraint: any JSON object, JSON that matches a schema, text that matches a GBNF grammar of llama.cpp, text
 * that matches a regular expression (ECMA-262) as a whole, or one of several texts.
 */
export type OutputFormat =
  | { readonly type: 'json' }
  | { readonly type: 'json-schema'; readonly schema: object | boolean }
  | { readonly type: 'grammar'; readonly source: string }
  | { readonly type: 'regex'; readonly pattern: string }
  /** At most 1,024 texts of 1,024 characters each. None of them is empty. */
  | { readonly type: 'choice'; readonly choices: readonly string[] }

/** Load settings of a call. */
export interface LoadOptions {
  /**
   * In tokens, at least 16. A model that is loaded with another context size is reloaded.
   * @default `defaultContextSize`, or the loaded context size if that is larger
   */
  readonly contextSize?: number
  /**
   * Applies when neither `contextSize` nor the Modelfile sets the context size.
   * @default the setting of the engine
   */
  readonly defaultContextSize?: number
  /**
   * How long the model stays loaded without calls, in milliseconds. The value applies until another call sets
   * one.
   * @default the setting of the engine
   */
  readonly keepAlive?: number | 'forever'
}

/** A conversation, which the template of the model turns into a prompt. */
export interface ChatInput {
  readonly kind: 'chat'
  /** The conversation, the oldest message first. */
  readonly messages: readonly Message[]
  /**
   * What the prompt ends with. `continue`: the last message, which is from the assistant and stays open.
   * `generation-prompt`: the start of a new answer. `none`: the end of the last message. A Go template decides this
   * itself, so it is rejected together with `none`, and with `generation-prompt` after an assistant message.
   * @default 'continue' if the last message is from the assistant and calls no tools, else 'generation-prompt'
   */
  readonly promptEnd?: PromptEnd
  /** Tools that the model may call. Absent without tools. */
  readonly tools?: readonly Tool[]
  /** Which tools the model may or must call. Absent: any or none. */
  readonly toolChoice?: ToolChoice
  /** Go template that replaces the template of the model. @default the template of the model */
  readonly template?: string
  /** Variables for the model's template. @default none */
  readonly templateOptions?: Readonly<Record<string, unknown>>
}

/** What the prompt ends with: see `promptEnd` of `ChatInput`. */
export type PromptEnd = 'continue' | 'generation-prompt' | 'none'

/** A tool that the model may call. */
export interface Tool {
  /** Unique in the request. At most 128 characters. */
  readonly name: string
  /** What the tool does, for the model. Absent without a description. */
  readonly description?: string
  /** JSON Schema of the arguments, which are an object. */
  readonly parameters: object
  /**
   * Whether to reject a schema that no grammar can enforce. Otherwise, a tool with such a schema accepts any
   * object.
   * @default false
   */
  readonly strict?: boolean
  /** Sets a cache breakpoint after the tool. */
  readonly cache?: CacheLifetime
}

/**
 * How long after its last use the prompt cache keeps the KV state of a breakpoint. A request has at most four
 * breakpoints. They follow the order of the prompt: tools, system messages, other messages. Breakpoints with
 * `1h` come before those with `5m`.
 */
export type CacheLifetime = '5m' | '1h'

/** Cache lifetimes in milliseconds. */
export const cacheLifetimes = {
  '5m': 5 * 60_000,
  '1h': 60 * 60_000,
} as const satisfies Record<CacheLifetime, number>

/** Which tools the model may or must call. */
export interface ToolChoice {
  /** `auto`: any or none. `none`: no tool. `required`: at least one. */
  readonly mode: 'auto' | 'none' | 'required'
  /** Names of the tools that the model may call. @default all */
  readonly names?: readonly string[]
  /** `false` allows at most one tool call per generation. */
  readonly parallel?: false
}

/** A text prompt, as in completion APIs. */
export interface TextInput {
  readonly kind: 'text'
  /**
   * Text and token ids. With a template, all ids come first and all text follows as one user message. With
   * `template: false`, texts and ids keep their order.
   */
  readonly prompt: readonly (string | readonly number[])[]
  /** System message. @default that of the Modelfile */
  readonly system?: string
  /**
   * Earlier turns of the conversation.
   * @default the messages of the Modelfile, or none if the prompt contains token ids
   */
  readonly messages?: readonly Message[]
  /**
   * Go template that replaces the template of the model. With `false`, the model continues the text without a
   * template.
   */
  readonly template?: string | false
  /**
   * Images of the last user message, which come after its text. Not together with `template: false`.
   *
   * @default none
   */
  readonly images?: readonly ImagePart[]
  /** Variables for the model's template. @default none */
  readonly templateOptions?: Readonly<Record<string, unknown>>
}

/**
 * Fill-in-the-middle: the model generates the text between prefix and suffix. Rejected for a model without
 * infill tokens, unless `template` uses the suffix.
 */
export interface InfillInput {
  readonly kind: 'infill'
  /** The text before the gap. */
  readonly prefix: string
  /** The text after the gap. */
  readonly suffix: string
  /** Go template that replaces the infill tokens of the model. @default none */
  readonly template?: string
}

/** One message of a conversation. */
export interface Message {
  /** Some chat templates support further roles. */
  readonly role: 'system' | 'user' | 'assistant' | 'tool' | (string & {})
  /** Parts of the message, in order: texts, images, tool calls and their results. */
  readonly content: readonly Part[]
}

/** A part of a message. */
export type Part = {
  /** Sets a cache breakpoint after the part. */
  readonly cache?: CacheLifetime
} & (
  | {
      /** `reasoning` is the reasoning of the model before its text. */
      readonly type: 'text' | 'reasoning'
      /** What the model reads, or has written. */
      readonly text: string
    }
  | ImagePart
  | {
      readonly type: 'tool-call'
      /** Id of the call, unique in the conversation. */
      readonly id: string
      /** Name of the tool. */
      readonly name: string
      /** Arguments as JSON text. */
      readonly arguments: string
    }
  | {
      readonly type: 'tool-result'
      /** The id of the call. When absent, the name or the position among the results identifies the call. */
      readonly id?: string
      /** Name of the tool. Absent if the client did not send it. */
      readonly name?: string
      /** What the tool has returned: texts and images. */
      readonly content: readonly Part[]
      /** Tells the model that the call has failed. @default false */
      readonly isError?: boolean
    }
)

/**
 * An image in a message of the user, or in a result of a tool. Before an engine gets the request, the image is checked, and one
 * with a `url` is read. A model that sees no images gets none: see `Engine.seesImages`.
 */
export interface ImagePart {
  readonly type: 'image'
  /** `image/png`, `image/jpeg`, `image/gif` or `image/webp`. If empty, it is found in the bytes. */
  readonly mediaType: string
  /** The bytes of the image, in Base64. At most 20 MiB, and 50 MiB of all images of a request. */
  readonly data: string
  /**
   * Where the image is, with an empty `mediaType` and empty `data`: a `data:` URL in Base64, or an `https:` URL of a host that
   * the option `imageHosts` allows. An engine never gets it.
   */
  readonly url?: string
  /**
   * Path of the image in the caller's request, which errors name, such as `messages[0].content[1]`.
   *
   * @default its path in this request
   */
  readonly param?: string
  /**
   * Text that replaces the image for a model that sees no images.
   *
   * @default in results of tools, a text that says so. The call is rejected for another image
   */
  readonly replacement?: string
}

/** How the next token is chosen. A field that is not set has the value of the Modelfile, then its default. */
export interface Sampling {
  /** From 0 to 100. Sampling is greedy below 1e-6. @default 0.8 */
  readonly temperature?: number
  /** From 0 to 1. 1 keeps all tokens. @default 0.95 */
  readonly topP?: number
  /** Number of likeliest tokens to sample from. 0 keeps all tokens. @default 40 */
  readonly topK?: number
  /** From 0 to 1. 0 keeps all tokens. @default 0.05 */
  readonly minP?: number
  /**
   * A whole number makes the output reproducible. `random` ignores the seed of the Modelfile.
   * @default the seed of the Modelfile, else a random seed
   */
  readonly seed?: number | 'random'
  /** From 0.01 to 100. 1 turns the penalty off. @default 1 */
  readonly repeatPenalty?: number
  /**
   * Number of last tokens that the repeat, presence and frequency penalties cover. 0 turns these penalties
   * off, -1 covers the whole context.
   * @default 64
   */
  readonly repeatLastN?: number
  /** From -100 to 100. @default 0 */
  readonly presencePenalty?: number
  /** From -100 to 100. @default 0 */
  readonly frequencyPenalty?: number
  /**
   * Pairs of a token id and a bias from -100 to 100, which is added to the logit of the token. A text stands for all of
   * its tokens. At most 256 texts of 256 characters each.
   *
   * @default none
   */
  readonly logitBias?: readonly (readonly [token: number | string, bias: number])[]
  /** Penalty for the repetition of long sequences of tokens (DRY). @default off */
  readonly dry?: DryPenalty
  /** Excludes the likeliest tokens at random (XTC). @default off */
  readonly xtc?: ExcludeTop
  /**
   * Bans all end-of-generation tokens. Then only `maxTokens`, the context size or a stop sequence ends the
   * output.
   * @default false
   */
  readonly ignoreEos?: boolean
  /**
   * Minimum number of generated tokens. Limits and stop sequences can still end the output earlier.
   * @default 0
   */
  readonly minTokens?: number
}

/**
 * DRY penalty ("don't repeat yourself"). Makes a token that would extend a repetition less likely. The
 * penalty grows with the length of the repetition. It is subtracted before the other penalties are applied.
 */
export interface DryPenalty {
  /** From 0 to 100. 0 turns the penalty off. */
  readonly strength: number
  /** Growth factor of the penalty per repeated token, from 1 to 100. @default 1.75 */
  readonly base?: number
  /** Length of the longest repetition without a penalty, in tokens. @default 2 */
  readonly allowedLength?: number
  /**
   * Number of last generated tokens to search for repetitions, at most 16,384. 0 searches none, -1 all up to
   * that number. The prompt is not searched.
   * @default -1
   */
  readonly lastN?: number
  /** Texts that end a repetition, at most 8 of 40 characters each. @default a new line, `:`, `"` and `*` */
  readonly breakers?: readonly string[]
}

/**
 * XTC ("exclude top choices"). Of all tokens whose probability reaches the threshold, only the least likely
 * stays. Has no effect at temperature 0.
 */
export interface ExcludeTop {
  /** Probability that XTC is applied to a token, from 0 to 1. */
  readonly probability: number
  /** Probability from 0 to 1. Above 0.5, at most one token reaches the threshold, so nothing is excluded. */
  readonly threshold: number
}
