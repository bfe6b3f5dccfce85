/** Translates the events of an answer to the stream parts of the SDK. */
import type {
  JSONObject,
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from '@ai-sdk/provider'
import type { FinishReason, GenerateEvent, SampledToken, TokenUsage } from '@modelmount/core/engine'
import { providerName } from './model-call.ts'

export type StreamPart = LanguageModelV3StreamPart
type Event<Type extends GenerateEvent['type']> = Extract<GenerateEvent, { readonly type: Type }>

/** The block that the last event belongs to. Blocks never interleave. */
type Block =
  | { readonly type: 'text' | 'reasoning'; readonly id: string }
  | {
      readonly type: 'tool'
      readonly id: string
      readonly name: string
      readonly index: number
      json: string
    }

/** Builds the parts of one answer, from its `start` event to its `end` event. */
export class StreamPartBuilder {
  #block: Block | undefined
  #blockCount = 0
  #fingerprint = ''
  #reasoningTokens = 0
  readonly #logprobs: SampledToken[] = []

  push(event: GenerateEvent): readonly StreamPart[] {
    switch (event.type) {
      case 'start':
        this.#fingerprint = event.fingerprint
        return []
      case 'text':
      case 'reasoning':
        return this.#pushText(event)
      case 'tool-call':
        return this.#openCall(event)
      case 'tool-arguments':
        return this.#pushArguments(event)
      case 'end':
        return [...this.#closeBlock(event.incompleteCalls), this.#toFinish(event)]
      default:
        return []
    }
  }

  #pushText({ type, text, tokens, logprobs = [] }: Event<'text' | 'reasoning'>): readonly StreamPart[] {
    if (type === 'reasoning') this.#reasoningTokens += tokens
    else this.#logprobs.push(...logprobs)
    if (text === '') return []
    if (this.#block?.type === type) return [{ type: `${type}-delta`, id: this.#block.id, delta: text }]
    const closed = this.#closeBlock()
    const id = `${this.#blockCount++}`
    this.#block = { type, id }
    return [...closed, { type: `${type}-start`, id }, { type: `${type}-delta`, id, delta: text }]
  }

  #openCall({ id, name, index }: Event<'tool-call'>): readonly StreamPart[] {
    const closed = this.#closeBlock()
    this.#block = { type: 'tool', id, name, index, json: '' }
    return [...closed, { type: 'tool-input-start', id, toolName: name }]
  }

  #pushArguments({ json }: Event<'tool-arguments'>): readonly StreamPart[] {
    if (this.#block?.type !== 'tool') return []
    this.#block.json += json
    return [{ type: 'tool-input-delta', id: this.#block.id, delta: json }]
  }

  /**
   * Ends the block. Of a tool call that was cut off, the SDK gets the input but no `tool-call`, so it does not
   * execute the tool.
   */
  #closeBlock(incompleteCalls: readonly number[] = []): readonly StreamPart[] {
    const block = this.#block
    this.#block = undefined
    if (!block) return []
    if (block.type !== 'tool') return [{ type: `${block.type}-end`, id: block.id }]
    const { id, name, index, json } = block
    const end: StreamPart = { type: 'tool-input-end', id }
    const isComplete = isJson(json) && !incompleteCalls.includes(index)
    return isComplete ? [end, { type: 'tool-call', toolCallId: id, toolName: name, input: json }] : [end]
  }

  #toFinish({ finishReason, stopSequence, usage, timings }: Event<'end'>): StreamPart {
    const metadata = {
      fingerprint: this.#fingerprint,
      timings,
      ...(stopSequence !== undefined && { stopSequence }),
      ...(this.#logprobs.length > 0 && { logprobs: this.#logprobs }),
    }
    return {
      type: 'finish',
      finishReason: toFinishReason(finishReason),
      usage: toUsage(usage, this.#reasoningTokens),
      providerMetadata: { [providerName]: metadata as unknown as JSONObject },
    }
  }
}

/** Whether the arguments of a call are complete. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const toFinishReason = (reason: FinishReason): LanguageModelV3FinishReason => ({
  unified: reason === 'context' ? 'length' : reason,
  raw: reason,
})

/** `cacheRead` and `cacheWrite` count the tokens of breakpoints. `raw` also has `reusedTokens`, which counts all reuse. */
function toUsage(usage: TokenUsage, reasoning: number): LanguageModelV3Usage {
  const { inputTokens: total, cacheReadTokens: cacheRead, cacheWriteTokens, outputTokens } = usage
  const cacheWrite = cacheWriteTokens['5m'] + cacheWriteTokens['1h']
  return {
    inputTokens: { total, noCache: total - cacheRead - cacheWrite, cacheRead, cacheWrite },
    outputTokens: { total: outputTokens, text: outputTokens - reasoning, reasoning },
    raw: usage as unknown as JSONObject,
  }
}

/** The last part of an answer that fails after its first part. */
export const failedFinish: Extract<StreamPart, { type: 'finish' }> = {
  type: 'finish',
  finishReason: { unified: 'error', raw: undefined },
  usage: {
    inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: undefined, text: undefined, reasoning: undefined },
  },
}
