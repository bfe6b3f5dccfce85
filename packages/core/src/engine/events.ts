/** What an engine says while it answers, in nobody's dialect. */
import type { CacheLifetime } from './request.ts'

/**
 * One `start`, then the prompt where it is asked for, then pieces in order, then one `end`. Each piece carries the
 * tokens it took, so that an abandoned answer can be metered exactly.
 */
export type GenerateEvent =
  | ({
      readonly type: 'start'
      readonly model: string
      /** Changes with the weights and the settings of the engine. */
      readonly fingerprint: string
      /**
       * Where this prompt goes another way than the one that it has most in common with, though that one goes on: behind so
       * many tokens, and this text. What is behind that has to be read again.
       */
      readonly divergence?: { readonly tokens: number; readonly behind: string }
    } & PromptUsage)
  /** Some tokens of the prompt, in order: all but the one that the model begins every text with. */
  | { readonly type: 'prompt'; readonly tokens: readonly PromptToken[] }
  | {
      readonly type: 'text' | 'reasoning'
      readonly text: string
      readonly tokens: number
      /** Of these tokens, where they were asked for. */
      readonly logprobs?: readonly SampledToken[]
    }
  /** Calls are numbered from 0, and come one after the other. */
  | { readonly type: 'tool-call'; readonly index: number; readonly id: string; readonly name: string }
  /** A piece of JSON: those of a whole call, joined, are an object. */
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
      /** The calls that were broken off, by the limit or by the model: their arguments are the beginning of an object. */
      readonly incompleteCalls?: readonly number[]
      /** Prompt and answer, with the token that ended it, where `returnTokens` asked for them. */
      readonly tokens?: readonly number[]
    }

/** A piece of an answer. */
export type ContentEvent = Exclude<GenerateEvent, { type: 'start' | 'prompt' | 'end' }>

/** Natural logarithms, of what the model says itself: with biases, before temperature and whatever else shapes the draw. */
export interface TokenLogprob {
  readonly id: number
  /** What it says by itself; a part of a character is U+FFFD. */
  readonly text: string
  readonly bytes: readonly number[]
  readonly logprob: number
}

export interface SampledToken extends TokenLogprob {
  /** The likeliest, in order; the drawn one need not be among them. */
  readonly top: readonly TokenLogprob[]
}

/** The first has no logprob: nothing is before it. */
export interface PromptToken extends Omit<SampledToken, 'logprob'> {
  readonly logprob: number | null
}

/** `context`: the context was full. `length`: `maxTokens` was reached. `tool-calls`: it ended with calls, all of them whole. */
export type FinishReason = 'stop' | 'length' | 'context' | 'tool-calls'

/** Counted from what was evaluated, never from what was asked. */
export interface PromptUsage {
  /** The whole prompt. */
  readonly inputTokens: number
  /** Prompt tokens whose state was already there, for whatever reason. */
  readonly reusedTokens: number
  /** Of these, the ones up to a breakpoint of an earlier call. */
  readonly cacheReadTokens: number
  /** Others up to a breakpoint, whose state is kept from now on; at the start of an answer: is going to be. */
  readonly cacheWriteTokens: Readonly<Record<CacheLifetime, number>>
}

export interface TokenUsage extends PromptUsage {
  readonly outputTokens: number
}

/**
 * What is written behind the part of a prompt that was read: what is kept for longer comes first, so up to the last
 * breakpoint of an hour all is.
 * @param breakpoints ascending, behind so many tokens
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

/** A whole answer. */
export interface GenerateResult {
  readonly text: string
  /** What the model thought first, where it did and that was asked to be told apart. */
  readonly reasoning?: string
  /** How many tokens that took; they are among its `outputTokens`. */
  readonly reasoningTokens?: number
  /** Those that are whole. */
  readonly toolCalls?: readonly ToolCall[]
  readonly finishReason: FinishReason
  /** The one that ended it, where one did. */
  readonly stopSequence?: string
  readonly usage: TokenUsage
  readonly timings: Timings
  readonly tokens?: readonly number[]
  /** Of the tokens of `text`. */
  readonly logprobs?: readonly SampledToken[]
  /** Of the prompt's. */
  readonly promptLogprobs?: readonly PromptToken[]
  readonly fingerprint: string
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON. */
  readonly arguments: string
}

/** Waits for the end of an answer. Throws an `AbortError` when it was cancelled before. */
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
