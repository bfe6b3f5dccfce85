/** Events of a generation, independent of any API dialect. */
import type { CacheLifetime } from './request.ts'

/**
 * One `start`, then the prompt if `promptLogprobs` is set, then pieces in order, then one `end`. Each piece carries its token
 * count, so that a cancelled generation is metered exactly.
 */
export type GenerateEvent =
  | ({
      readonly type: 'start'
      readonly model: string
      /** Changes with the weights and the engine settings. */
      readonly fingerprint: string
      /**
       * Where this prompt diverges from the cached prompt with the longest common prefix: after this many tokens and this
       * text. The tokens after it are evaluated again. Absent when the prompt extends the cached one.
       */
      readonly divergence?: { readonly tokens: number; readonly behind: string }
    } & PromptUsage)
  /** Prompt tokens in order, without the begin token of the model. */
  | { readonly type: 'prompt'; readonly tokens: readonly PromptToken[] }
  | {
      readonly type: 'text' | 'reasoning'
      readonly text: string
      readonly tokens: number
      /** One entry per token, if requested. */
      readonly logprobs?: readonly SampledToken[]
    }
  /** Calls are numbered from 0 and never interleave. */
  | { readonly type: 'tool-call'; readonly index: number; readonly id: string; readonly name: string }
  /** A piece of JSON. The pieces of a complete call, joined, are an object. */
  | {
      readonly type: 'tool-arguments'
      readonly index: number
      readonly json: string
      readonly tokens: number
    }
  | {
      readonly type: 'end'
      readonly finishReason: FinishReason
      readonly stopSequence?: string
      readonly usage: TokenUsage
      readonly timings: Timings
      /** Calls cut off by a limit or by the model: their arguments are the beginning of an object. */
      readonly incompleteCalls?: readonly number[]
      /** Prompt and output with its end token, if `returnTokens` is set. */
      readonly tokens?: readonly number[]
    }

/** A piece of an answer. */
export type ContentEvent = Exclude<GenerateEvent, { type: 'start' | 'prompt' | 'end' }>

/** Natural logarithms of the model's own probabilities: after logit biases, before temperature and other samplers. */
export interface TokenLogprob {
  readonly id: number
  /** The text of this token alone; a partial character is U+FFFD. */
  readonly text: string
  readonly bytes: readonly number[]
  readonly logprob: number
}

export interface SampledToken extends TokenLogprob {
  /** The likeliest tokens, in order; the sampled one may be absent. */
  readonly top: readonly TokenLogprob[]
}

/** The first token has no logprob, since nothing precedes it. */
export interface PromptToken extends Omit<SampledToken, 'logprob'> {
  readonly logprob: number | null
}

/** `context`: the context is full. `length`: `maxTokens` is reached. `tool-calls`: the output ends with complete calls. */
export type FinishReason = 'stop' | 'length' | 'context' | 'tool-calls'

/** Counts of evaluated tokens, never of requested ones. */
export interface PromptUsage {
  /** The whole prompt. */
  readonly inputTokens: number
  /** Prompt tokens whose KV state was reused, for any reason. */
  readonly reusedTokens: number
  /** Reused tokens up to a breakpoint of an earlier call. */
  readonly cacheReadTokens: number
  /** Other tokens up to a breakpoint, whose state is cached from now on. In `start`: will be cached. */
  readonly cacheWriteTokens: Readonly<Record<CacheLifetime, number>>
}

export interface TokenUsage extends PromptUsage {
  readonly outputTokens: number
}

/**
 * Splits the tokens after the cache read by lifetime. Longer lifetimes come first, so that all tokens up to the last `1h`
 * breakpoint count as `1h`.
 * @param breakpoints ascending by `length`, in tokens
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

export const addUsage = (a: TokenUsage, b: TokenUsage): TokenUsage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  reusedTokens: a.reusedTokens + b.reusedTokens,
  cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
  cacheWriteTokens: {
    '5m': a.cacheWriteTokens['5m'] + b.cacheWriteTokens['5m'],
    '1h': a.cacheWriteTokens['1h'] + b.cacheWriteTokens['1h'],
  },
  outputTokens: a.outputTokens + b.outputTokens,
})

/** Cache fields of a prompt without breakpoints. */
export const uncached = { cacheReadTokens: 0, cacheWriteTokens: { '5m': 0, '1h': 0 } } as const

export interface Timings {
  readonly loadMs: number
  readonly promptMs: number
  readonly generateMs: number
}

/** The collected output of one generation. */
export interface GenerateResult {
  readonly text: string
  /** The model's reasoning, if `reasoning` was requested and the model reasoned. */
  readonly reasoning?: string
  /** Included in `outputTokens`. */
  readonly reasoningTokens?: number
  /** Complete calls only. */
  readonly toolCalls?: readonly ToolCall[]
  readonly finishReason: FinishReason
  /** The stop sequence that ended the output. */
  readonly stopSequence?: string
  readonly usage: TokenUsage
  readonly timings: Timings
  readonly tokens?: readonly number[]
  /** One entry per token of `text`. */
  readonly logprobs?: readonly SampledToken[]
  /** One entry per prompt token. */
  readonly promptLogprobs?: readonly PromptToken[]
  readonly fingerprint: string
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON. */
  readonly arguments: string
}

/** Collects all events. Throws an `AbortError` when the generation was cancelled before its end. */
export async function collect(events: AsyncIterable<GenerateEvent>): Promise<GenerateResult> {
  let text = ''
  let reasoning = ''
  let reasoningTokens = 0
  let fingerprint = ''
  const logprobs: SampledToken[] = []
  const promptLogprobs: PromptToken[] = []
  const calls: { -readonly [Key in keyof ToolCall]: ToolCall[Key] }[] = []
  for await (const event of events) {
    if (event.type === 'start') fingerprint = event.fingerprint
    else if (event.type === 'prompt') for (const token of event.tokens) promptLogprobs.push(token)
    else if (event.type === 'text') {
      text += event.text
      for (const token of event.logprobs ?? []) logprobs.push(token)
    } else if (event.type === 'reasoning') {
      reasoning += event.text
      reasoningTokens += event.tokens
    } else if (event.type === 'tool-call') calls.push({ id: event.id, name: event.name, arguments: '' })
    else if (event.type === 'tool-arguments') {
      const call = calls[event.index]
      if (call) call.arguments += event.json
    } else if (event.type === 'end') {
      const { type: _, incompleteCalls = [], ...end } = event
      const toolCalls = calls.filter((_call, index) => !incompleteCalls.includes(index))
      return {
        text,
        ...(reasoning !== '' && { reasoning, reasoningTokens }),
        ...(toolCalls.length > 0 && { toolCalls }),
        ...(logprobs.length > 0 && { logprobs }),
        ...(promptLogprobs.length > 0 && { promptLogprobs }),
        ...end,
        fingerprint,
      }
    }
  }
  throw answerCancelled()
}

export const answerCancelled = (): DOMException => new DOMException('The answer was cancelled.', 'AbortError')
