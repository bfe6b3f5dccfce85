/** Events of a generation, independent of any API dialect. */
import type { CacheLifetime } from './request.ts'

/**
 * Event of a generation. The order is: one `start`, then `prompt` events if `promptLogprobs` is set, then
 * content events, then one `end`. If `returnProgress` is set, `progress` events of the load come before `start`, and
 * those of the prompt before the first content event. In content events, `tokens` counts the tokens sampled since the previous
 * count, so that a cancelled generation is metered exactly.
 */
export type GenerateEvent =
  | ({
      readonly type: 'start'
      /** Name of the model with its tag. */
      readonly model: string
      /** Changes when the weights or the engine settings change. */
      readonly fingerprint: string
      /**
       * Where this prompt diverges from the cached prompt with the longest common prefix. `tokens` is the
       * length of that prefix, and `behind` is the text at its end. Absent if one of the two prompts extends
       * the other, or if they share only a few tokens.
       */
      readonly divergence?: { readonly tokens: number; readonly behind: string }
    } & PromptUsage)
  /** The next prompt tokens, in order. A BOS token that the engine added is left out. */
  | { readonly type: 'prompt'; readonly tokens: readonly PromptToken[] }
  | {
      /** `reasoning` is the reasoning of the model before its text. */
      readonly type: 'text' | 'reasoning'
      /** The next piece. */
      readonly text: string
      /** Number of sampled tokens since the previous count. */
      readonly tokens: number
      /** Times so far, if the request sets `returnTimings`. */
      readonly timings?: OutputTimings
      /** One entry per token, if the request sets `logprobs`. */
      readonly logprobs?: readonly SampledToken[]
    }
  /** Start of a tool call. `index` counts calls from 0. Calls never interleave. */
  | { readonly type: 'tool-call'; readonly index: number; readonly id: string; readonly name: string }
  /** Piece of the arguments of a tool call. The joined pieces of a complete call are a JSON object. */
  | {
      readonly type: 'tool-arguments'
      /** Position of the tool call, from 0. */
      readonly index: number
      /** The next piece of the arguments. */
      readonly json: string
      /** Number of sampled tokens since the previous count. */
      readonly tokens: number
      /** Times so far, if the request sets `returnTimings`. */
      readonly timings?: OutputTimings
    }
  | ({ readonly type: 'progress' } & GenerationProgress)
  | {
      readonly type: 'end'
      /** Why the output ended. */
      readonly finishReason: FinishReason
      /** The stop sequence that ended the output. Absent if none did. */
      readonly stopSequence?: string
      /** Tokens of prompt and output. */
      readonly usage: TokenUsage
      /** How long loading, prompt and output took, in ms. */
      readonly timings: Timings
      /** Indices of the tool calls that a limit or the model cut off. Their arguments are incomplete JSON. */
      readonly incompleteCalls?: readonly number[]
      /**
       * Token ids of the prompt and the output, if `returnTokens` is set. If the model ended the output, its
       * end token is the last id.
       */
      readonly tokens?: readonly number[]
    }

/** Event with a piece of the output. */
export type ContentEvent = Exclude<GenerateEvent, { type: 'start' | 'prompt' | 'progress' | 'end' }>

/** How far a generation has come before its first token. No number of a phase ever decreases. */
export type GenerationProgress = LoadProgress | ({ readonly phase: 'prompt' } & PromptProgress)

/** How far the load of a model has come. */
export interface LoadProgress {
  readonly phase: 'load'
  /** Loaded part of the model, from 0 to 1. */
  readonly fraction: number
}

/** How far the evaluation of a prompt has come. */
export interface PromptProgress {
  /** Length of the prompt, in tokens. */
  readonly total: number
  /** Prompt tokens whose KV state is reused. */
  readonly cached: number
  /** Prompt tokens that are evaluated or reused. The first event has `cached`, and the last one `total`. */
  readonly processed: number
  /** Time since the evaluation began, in ms. */
  readonly ms: number
}

/**
 * Token with the natural logarithm of its probability. The probability includes logit biases, but no
 * temperature and no other sampling step.
 */
export interface TokenLogprob {
  /** Id in the vocabulary of the model. */
  readonly id: number
  /** Text of this token alone. A partial character is U+FFFD. */
  readonly text: string
  /** The bytes of the token in UTF-8, each from 0 to 255. */
  readonly bytes: readonly number[]
  /** Natural logarithm of the probability. */
  readonly logprob: number
}

/** A token of the output, and the likeliest tokens in its place. */
export interface SampledToken extends TokenLogprob {
  /** The most likely tokens, in descending order. The sampled token may be absent. */
  readonly top: readonly TokenLogprob[]
}

/** The first token has no logprob, since no token precedes it. */
export interface PromptToken extends Omit<SampledToken, 'logprob'> {
  /** Natural logarithm of the probability. Null for the first token of the prompt. */
  readonly logprob: number | null
}

/**
 * `stop`: the model or a stop sequence ended the output. `context`: the context is full. `length`:
 * `maxTokens` is reached. `tool-calls`: the output ends with complete tool calls.
 */
export type FinishReason = 'stop' | 'length' | 'context' | 'tool-calls'

/** Token counts of one prompt. */
export interface PromptUsage {
  /** Length of the whole prompt. */
  readonly inputTokens: number
  /** Prompt tokens whose KV state was reused. Includes `cacheReadTokens`. */
  readonly reusedTokens: number
  /** Reused tokens that were cached for a breakpoint of an earlier call. */
  readonly cacheReadTokens: number
  /**
   * Tokens that this call writes to the prompt cache, by lifetime. In `start`, these are the planned numbers.
   */
  readonly cacheWriteTokens: Readonly<Record<CacheLifetime, number>>
}

/** Tokens of a call. */
export interface TokenUsage extends PromptUsage {
  /** Number of generated tokens, with those of reasoning. */
  readonly outputTokens: number
  /** Set if the engine does not know some of the numbers, and estimates them. */
  readonly isEstimated?: boolean
}

/**
 * Counts the tokens that a call writes to the cache, without the tokens that it reads from the cache. Tokens
 * up to the last `1h` breakpoint count as `1h`, and tokens from there to the last breakpoint as `5m`.
 * @param breakpoints sorted by `length`, which counts tokens
 */
export function computeCacheWrites(
  cacheReadTokens: number,
  breakpoints: readonly { readonly length: number; readonly lifetime: CacheLifetime }[],
): PromptUsage['cacheWriteTokens'] {
  const hour = Math.max(
    cacheReadTokens,
    breakpoints.findLast(({ lifetime }) => lifetime === '1h')?.length ?? 0,
  )
  const last = Math.max(hour, breakpoints.at(-1)?.length ?? 0)
  return { '5m': last - hour, '1h': hour - cacheReadTokens }
}

/** Cache fields of a prompt without breakpoints. */
export const uncached = { cacheReadTokens: 0, cacheWriteTokens: { '5m': 0, '1h': 0 } } as const

/** Times of an answer so far, in ms. */
export interface OutputTimings {
  /** From the start of the evaluation of the prompt to the first token. */
  readonly promptMs: number
  /** Since the first token. */
  readonly generateMs: number
}

/** How long the parts of a call took, in milliseconds. */
export interface Timings extends OutputTimings {
  /** Milliseconds that the call waited for the model to be loaded. 0 for a loaded model. */
  readonly loadMs: number
}

/** The collected output of one generation. */
export interface GenerateResult {
  /** The whole text. */
  readonly text: string
  /** The model's reasoning, if `reasoning` was requested and the model reasoned. */
  readonly reasoning?: string
  /** Number of reasoning tokens, which `outputTokens` includes. */
  readonly reasoningTokens?: number
  /** Complete tool calls. Incomplete calls are left out. */
  readonly toolCalls?: readonly ToolCall[]
  /** Why the output ended. */
  readonly finishReason: FinishReason
  /** The stop sequence that ended the output. */
  readonly stopSequence?: string
  /** Tokens of prompt and output. */
  readonly usage: TokenUsage
  /** How long loading, prompt and output took, in ms. */
  readonly timings: Timings
  /** Token ids of prompt and output, if `returnTokens` was set. */
  readonly tokens?: readonly number[]
  /** One entry per token of `text`. */
  readonly logprobs?: readonly SampledToken[]
  /** One entry per prompt token. */
  readonly promptLogprobs?: readonly PromptToken[]
  /** Changes when the weights or the engine settings change. */
  readonly fingerprint: string
}

/** A call of a tool that the model asks for. */
export interface ToolCall {
  /** Id of the call, which its result repeats. */
  readonly id: string
  /** The tool that the model calls. */
  readonly name: string
  /** Arguments as JSON text. */
  readonly arguments: string
}

/** Collects all events. Throws an `AbortError` if the stream ends without an `end` event. */
export async function collect(events: AsyncIterable<GenerateEvent>): Promise<GenerateResult> {
  const collector = new ResultCollector()
  for await (const event of events) {
    const result = collector.add(event)
    if (result) return result
  }
  throw answerCancelled()
}

/** Collects the events of one generation. */
export class ResultCollector {
  #text = ''
  #reasoning = ''
  #reasoningTokens = 0
  #fingerprint = ''
  readonly #logprobs: SampledToken[] = []
  readonly #promptLogprobs: PromptToken[] = []
  readonly #calls: { -readonly [Key in keyof ToolCall]: ToolCall[Key] }[] = []

  /** Returns the result at the `end` event. */
  add(event: GenerateEvent): GenerateResult | undefined {
    if (event.type === 'start') this.#fingerprint = event.fingerprint
    else if (event.type === 'prompt') for (const token of event.tokens) this.#promptLogprobs.push(token)
    else if (event.type === 'text') {
      this.#text += event.text
      for (const token of event.logprobs ?? []) this.#logprobs.push(token)
    } else if (event.type === 'reasoning') {
      this.#reasoning += event.text
      this.#reasoningTokens += event.tokens
    } else if (event.type === 'tool-call') this.#calls.push({ id: event.id, name: event.name, arguments: '' })
    else if (event.type === 'tool-arguments') {
      const call = this.#calls[event.index]
      if (call) call.arguments += event.json
    } else if (event.type === 'end') return this.#toResult(event)
    return undefined
  }

  #toResult({
    type: _,
    incompleteCalls = [],
    ...end
  }: Extract<GenerateEvent, { type: 'end' }>): GenerateResult {
    const toolCalls = this.#calls.filter((_call, index) => !incompleteCalls.includes(index))
    return {
      text: this.#text,
      ...(this.#reasoning !== '' && { reasoning: this.#reasoning, reasoningTokens: this.#reasoningTokens }),
      ...(toolCalls.length > 0 && { toolCalls }),
      ...(this.#logprobs.length > 0 && { logprobs: this.#logprobs }),
      ...(this.#promptLogprobs.length > 0 && { promptLogprobs: this.#promptLogprobs }),
      ...end,
      fingerprint: this.#fingerprint,
    }
  }
}

/** @param cause the reason of the signal that has aborted @default none */
export function answerCancelled(cause?: unknown): DOMException {
  const error = new DOMException('The answer was cancelled.', 'AbortError')
  return cause === undefined ? error : Object.defineProperty(error, 'cause', { value: cause })
}
