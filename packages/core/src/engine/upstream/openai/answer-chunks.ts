/** Turns the events of a streamed chat or completion into pieces of an answer. */
import type { EventSourceMessage } from 'eventsource-parser'
import { isRecord } from '../../../util/is-record.ts'
import type { FinishReason, SampledToken, TokenLogprob } from '../../events.ts'
import { parseRecord } from '../response-fields.ts'
import type { AnswerPiece, AnswerReader, ReportedUsage } from '../upstream-api.ts'
import { invalidResponse, toInBandError } from '../upstream-errors.ts'

const done = '[DONE]'

export class ChunkReader implements AnswerReader<EventSourceMessage> {
  readonly #model: string
  #hasStarted = false
  #finishReason: FinishReason | undefined
  #stopSequence: string | undefined
  #usage: ReportedUsage | undefined
  /** Index and id of the current tool call, and whether it has arguments. */
  #call: { readonly index: number; readonly id: string; hasArguments: boolean } | undefined
  #callCount = 0
  /** Output tokens that the server has counted before this chunk. */
  #counted: number | undefined

  /** @param model name that errors contain */
  constructor(model: string) {
    this.#model = model
  }

  read({ data }: EventSourceMessage): readonly AnswerPiece[] {
    if (data === done) {
      const end = this.end()
      return end ? [end] : []
    }
    const chunk = parseRecord(data)
    if (chunk.error) throw toInBandError(chunk.error, this.#model)
    const pieces: AnswerPiece[] = []
    const usage = toUsage(chunk.usage)
    if (!this.#hasStarted) {
      this.#hasStarted = true
      const fingerprint = toText(chunk.system_fingerprint) || undefined
      // A call that does not reach its end counts what the first chunk says. Some servers say 0 until the end.
      pieces.push({ type: 'start', fingerprint, usage: usage?.inputTokens ? usage : undefined })
    }
    const progress = isRecord(chunk.prompt_progress) && toProgress(chunk.prompt_progress)
    if (progress) pieces.push(progress)
    const tokens = this.#countTokens(usage)
    const [choice] = Array.isArray(chunk.choices) ? (chunk.choices as readonly unknown[]) : []
    if (isRecord(choice)) pieces.push(...this.#readChoice(choice, tokens))
    if (usage) this.#usage = usage
    return pieces
  }

  /** Returns the last piece, if the server has finished the answer. */
  end(): AnswerPiece | undefined {
    if (this.#finishReason === undefined) return undefined
    return {
      type: 'end',
      finishReason: this.#finishReason,
      ...(this.#stopSequence !== undefined && { stopSequence: this.#stopSequence }),
      usage: this.#usage,
    }
  }

  #readChoice(choice: Record<string, unknown>, tokens: number): readonly AnswerPiece[] {
    const delta = isRecord(choice.delta) ? choice.delta : choice
    const pieces = this.#readDelta(delta, toLogprobs(choice.logprobs))
    const reason = toText(choice.finish_reason)
    if (reason) {
      this.#finishReason = toFinishReason(reason)
      if (typeof choice.stop_reason === 'string') this.#stopSequence = choice.stop_reason
      pieces.push(...this.#closeCall())
    }
    return countFirst(pieces, tokens)
  }

  #readDelta(delta: Record<string, unknown>, logprobs: readonly SampledToken[] | undefined): AnswerPiece[] {
    const pieces: AnswerPiece[] = []
    // vLLM has renamed its field.
    const reasoning = toText(delta.reasoning_content) || toText(delta.reasoning)
    if (reasoning) pieces.push({ type: 'reasoning', text: reasoning, logprobs })
    const text = toText(delta.content) || toText(delta.text)
    if (text || (logprobs && !reasoning)) pieces.push({ type: 'text', text, logprobs })
    if (Array.isArray(delta.tool_calls))
      for (const call of delta.tool_calls) pieces.push(...this.#readCall(call))
    return pieces
  }

  #readCall(call: unknown): readonly AnswerPiece[] {
    if (!isRecord(call) || !isRecord(call.function)) throw invalidResponse('a tool call has a wrong type')
    const [id, name, json] = [toText(call.id), toText(call.function.name), toText(call.function.arguments)]
    const index = typeof call.index === 'number' ? call.index : this.#guessIndex(id)
    const pieces: AnswerPiece[] = []
    if (this.#call?.index !== index) {
      if (index < this.#callCount) throw invalidResponse('tool calls interleave')
      if (!name) throw invalidResponse('a tool call has no name')
      pieces.push(...this.#closeCall())
      this.#call = { index, id, hasArguments: false }
      this.#callCount = index + 1
      pieces.push({ type: 'tool-call', id: id || `call_${index}`, name })
    }
    if (json && this.#call) {
      this.#call.hasArguments = true
      pieces.push({ type: 'tool-arguments', json })
    }
    return pieces
  }

  /** Some servers send no index. A new id is a new call. */
  #guessIndex(id: string): number {
    return this.#call && (!id || id === this.#call.id) ? this.#call.index : this.#callCount
  }

  /** A tool without parameters may be called without arguments, which are then an empty object. */
  #closeCall(): readonly AnswerPiece[] {
    if (!this.#call || this.#call.hasArguments) return []
    this.#call.hasArguments = true
    return [{ type: 'tool-arguments', json: '{}', tokens: 0 }]
  }

  /** Returns the tokens of this chunk: a server may send several in one, and some say how many. */
  #countTokens(usage: ReportedUsage | undefined): number {
    const total = usage?.outputTokens
    if (total === undefined) return 1
    const before = this.#counted
    this.#counted = total
    return before === undefined ? 1 : Math.max(0, total - before)
  }
}

/** The pieces of a chunk are counted together, with its first piece. */
const countFirst = (pieces: readonly AnswerPiece[], tokens: number): readonly AnswerPiece[] => {
  let rest = tokens
  return pieces.map((piece) => {
    if (!('text' in piece || 'json' in piece)) return piece
    const counted = { ...piece, tokens: rest }
    rest = 0
    return counted
  })
}

function toFinishReason(reason: string): FinishReason {
  if (reason === 'length') return 'length'
  return reason === 'tool_calls' || reason === 'function_call' ? 'tool-calls' : 'stop'
}

export function toUsage(usage: unknown): ReportedUsage | undefined {
  if (!isRecord(usage)) return undefined
  const details = isRecord(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  return {
    inputTokens: toCount(usage.prompt_tokens),
    outputTokens: toCount(usage.completion_tokens),
    cachedTokens: toCount(details.cached_tokens),
  }
}

/** Undefined for numbers that cannot be right. */
function toProgress(progress: Record<string, unknown>): AnswerPiece | undefined {
  const [total, cached, processed, ms] = (['total', 'cache', 'processed', 'time_ms'] as const).map((name) =>
    toCount(progress[name]),
  )
  if (total === undefined || cached === undefined || processed === undefined) return undefined
  return { type: 'progress', total, cached, processed, ms: ms ?? 0 }
}

/** Undefined for a count that cannot be right, which is then estimated. */
export const toCount = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined

const toText = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Those of a chat are a list of tokens, those of a completion are several lists. */
function toLogprobs(logprobs: unknown): readonly SampledToken[] | undefined {
  if (!isRecord(logprobs)) return undefined
  if (Array.isArray(logprobs.content)) return logprobs.content.flatMap(toSampledToken)
  if (!Array.isArray(logprobs.tokens)) return undefined
  const { tokens, token_logprobs: values, top_logprobs: tops } = logprobs
  return tokens.flatMap((token: unknown, index: number) => {
    const [logprob, top] = [itemOf(values, index), itemOf(tops, index)]
    const alternatives = isRecord(top) ? Object.entries(top) : []
    return toSampledToken({
      ...{ token, logprob },
      top_logprobs: alternatives.map(([token, logprob]) => ({ token, logprob })),
    })
  })
}

const itemOf = (list: unknown, index: number): unknown => (Array.isArray(list) ? list[index] : undefined)

function toSampledToken(value: unknown): readonly SampledToken[] {
  const [token] = toTokenLogprob(value)
  if (!token) return []
  const { top_logprobs: top } = value as { readonly top_logprobs?: unknown }
  return [{ ...token, top: Array.isArray(top) ? top.flatMap(toTokenLogprob) : [] }]
}

/** Most servers do not send the ids of tokens. */
const unknownId = -1

function toTokenLogprob(value: unknown): readonly TokenLogprob[] {
  if (!isRecord(value) || typeof value.token !== 'string' || typeof value.logprob !== 'number') return []
  const { token: text, logprob, bytes, id } = value
  return [
    {
      ...{ text, logprob, id: typeof id === 'number' ? id : unknownId },
      bytes: Array.isArray(bytes) ? (bytes as readonly number[]) : [...Buffer.from(text)],
    },
  ]
}
