/** What the three APIs have in common: a conversation, and the parts of an answer. */

export type ApiName = 'ollama' | 'openai' | 'anthropic'

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON, as the model wrote it. */
  readonly arguments: string
}

export type Message =
  | { readonly role: 'user'; readonly text: string }
  | {
      readonly role: 'assistant'
      readonly text: string
      readonly reasoning: string
      readonly toolCalls: readonly ToolCall[]
    }
  | { readonly role: 'tool'; readonly callId: string; readonly name: string; readonly text: string }

export interface Tool {
  readonly name: string
  readonly description?: string
  /** JSON Schema. */
  readonly parameters: object
}

export interface ChatRequest {
  readonly model: string
  readonly system?: string
  readonly messages: readonly Message[]
  readonly temperature?: number
  readonly maxTokens?: number
  readonly seed?: number
  /** Whether the model thinks before it answers. By default, the API decides. */
  readonly isThinking?: boolean
  readonly tools: readonly Tool[]
  /** JSON Schema of the answer. */
  readonly schema?: object
  /** Whether the Anthropic API is asked to cache the prompt. The others cache without being asked. */
  readonly isCached: boolean
}

export interface Usage {
  /** All tokens of the prompt. */
  readonly inputTokens: number
  /** Tokens of the prompt that the prompt cache had. */
  readonly cachedTokens: number
  /** Tokens of the prompt that were written to the prompt cache. Only the Anthropic API reports them. */
  readonly cacheWriteTokens?: number
  readonly outputTokens: number
  /** As the engine measured it, without the network. The Anthropic API does not report it. */
  readonly tokensPerSecond?: number
}

/** What happens before the first token. */
export interface Progress {
  readonly phase: 'load' | 'prompt'
  /** From 0 to 1. */
  readonly fraction: number
}

export type AnswerPart =
  | { readonly type: 'text' | 'reasoning'; readonly text: string }
  /** The first part of a call has an id and a name. */
  | { readonly type: 'tool-call'; readonly index: number; readonly call: Partial<ToolCall> }
  | { readonly type: 'progress'; readonly progress: Progress }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: string }

export interface Api {
  readonly title: string
  /** Path below the base URL of the APIs. */
  readonly path: string
  readonly toBody: (request: ChatRequest) => object
  /** Fields that only the playground sends, for progress and timings. */
  readonly measuring: object
  /** Yields the parts of an answer. Throws an `ApiError` for an error in the stream. */
  readonly readAnswer: (response: Response) => AsyncGenerator<AnswerPart>
}

/** The arguments of a call as a value. Models write broken JSON at times. */
export function parseArguments({ arguments: json }: Pick<ToolCall, 'arguments'>): object {
  try {
    const value: unknown = JSON.parse(json === '' ? '{}' : json)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
