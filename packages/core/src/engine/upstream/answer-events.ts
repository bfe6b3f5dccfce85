/** Turns the pieces of an upstream's answer into events of the engine contract. */
import { isRecord } from '../../util/is-record.ts'
import { tryParseJson } from '../../util/try-parse-json.ts'
import type { EngineCall } from '../engine.ts'
import { type GenerateEvent, type PromptUsage, type TokenUsage, uncached } from '../events.ts'
import type { GenerateRequest } from '../request.ts'
import type { AnswerDefaults, AnswerPiece, ReportedUsage, UpstreamAnswer } from './upstream-api.ts'
import { invalidResponse } from './upstream-errors.ts'

export interface AnswerContext extends AnswerDefaults {
  readonly request: GenerateRequest
  readonly call: Pick<EngineCall, 'signal'>
}

/**
 * Ends early, without an error, when the signal aborts. For speed, only one iterator is between the parts of the response and
 * the events.
 */
export async function* toEvents<Part>(
  begin: () => UpstreamAnswer<Part> | Promise<UpstreamAnswer<Part>>,
  context: AnswerContext,
): AsyncGenerator<GenerateEvent> {
  const { signal } = context.call
  const writer = new EventWriter(context)
  const { parts, reader } = await begin()
  for await (const list of parts)
    for (const part of list)
      for (const piece of reader.read(part)) {
        if (signal.aborted) return
        if (!writer.hasStarted) yield writer.start(piece)
        const event = writer.toEvent(piece)
        if (event) yield event
        if (piece.type === 'end') return
      }
  if (signal.aborted) return
  // Some servers close the connection without a last part.
  const last = reader.end?.()
  const event = last && writer.toEvent(last)
  if (!event) throw invalidResponse('it ended before the answer was complete')
  yield event
}

class EventWriter {
  readonly #context: AnswerContext
  readonly #startedAt = performance.now()
  #firstTokenAt: number | undefined
  #promptUsage: PromptUsage
  #outputTokens = 0
  /** The arguments of each tool call, as JSON. */
  readonly #calls: string[] = []
  hasStarted = false

  constructor(context: AnswerContext) {
    this.#context = context
    this.#promptUsage = { ...uncached, inputTokens: context.estimatedInputTokens, reusedTokens: 0 }
  }

  start(piece: AnswerPiece): GenerateEvent {
    this.hasStarted = true
    const { request, fingerprint } = this.#context
    if (piece.type === 'start') this.#addPromptUsage(piece.usage)
    return {
      ...{ type: 'start', model: request.model, ...this.#promptUsage },
      fingerprint: (piece.type === 'start' && piece.fingerprint) || fingerprint,
    }
  }

  toEvent(piece: AnswerPiece): GenerateEvent | undefined {
    if (piece.type === 'start') return undefined
    if (piece.type === 'end') return this.#end(piece)
    if (piece.type === 'progress') return { phase: 'prompt', ...piece }
    this.#firstTokenAt ??= performance.now()
    const { request } = this.#context
    const timings = request.returnTimings && { timings: this.#timings() }
    if (piece.type === 'tool-call') {
      this.#calls.push('')
      return { ...piece, index: this.#calls.length - 1 }
    }
    const { tokens = 1 } = piece
    this.#outputTokens += tokens
    if (piece.type === 'tool-arguments') {
      const index = this.#calls.length - 1
      if (index < 0) throw invalidResponse('arguments came before their tool call')
      this.#calls[index] += piece.json
      return { type: 'tool-arguments', index, json: piece.json, tokens, ...timings }
    }
    return {
      ...{ type: piece.type, text: piece.text, tokens },
      ...timings,
      ...(request.logprobs !== undefined && { logprobs: piece.logprobs ?? [] }),
    }
  }

  #end({ finishReason, stopSequence, usage, tokens }: Extract<AnswerPiece, { type: 'end' }>): GenerateEvent {
    this.#addPromptUsage(usage)
    const incompleteCalls = [...this.#calls.keys()].filter(
      (index) => !isRecord(tryParseJson(this.#calls[index] ?? '')),
    )
    const isCalling = this.#calls.length > 0 && incompleteCalls.length === 0
    return {
      type: 'end',
      finishReason: finishReason === 'stop' && isCalling ? 'tool-calls' : finishReason,
      ...(stopSequence !== undefined && { stopSequence }),
      usage: this.#usage(usage),
      timings: { loadMs: 0, ...this.#timings() },
      ...(incompleteCalls.length > 0 && { incompleteCalls }),
      ...(tokens && this.#context.request.returnTokens && { tokens }),
    }
  }

  #usage(reported: ReportedUsage | undefined): TokenUsage {
    const isEstimated = reported?.outputTokens === undefined || reported.inputTokens === undefined
    return {
      ...this.#promptUsage,
      outputTokens: reported?.outputTokens ?? this.#outputTokens,
      ...(isEstimated && { isEstimated }),
    }
  }

  #addPromptUsage(usage: ReportedUsage | undefined): void {
    const { inputTokens, cachedTokens, cacheWriteTokens } = usage ?? {}
    this.#promptUsage = {
      inputTokens: inputTokens ?? this.#promptUsage.inputTokens,
      reusedTokens: cachedTokens ?? this.#promptUsage.reusedTokens,
      cacheReadTokens: cachedTokens ?? this.#promptUsage.cacheReadTokens,
      cacheWriteTokens: cacheWriteTokens ?? this.#promptUsage.cacheWriteTokens,
    }
  }

  #timings() {
    const now = performance.now()
    const firstTokenAt = this.#firstTokenAt ?? now
    return { promptMs: firstTokenAt - this.#startedAt, generateMs: now - firstTokenAt }
  }
}
