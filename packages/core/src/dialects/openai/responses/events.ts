/**
 * Renders a response as a stream of events, or as the response object in its last event.
 * Shape: OpenAI API reference, "Streaming events".
 */

import type { Generation } from '../../../calls/generation.ts'
import { answerCancelled, type GenerateEvent, type TokenUsage } from '../../../engine/events.ts'
import type { LlmError } from '../../../errors.ts'
import { eventFrame } from '../../../http/streams.ts'
import { AnswerTimings, renderProgress } from '../../answer-progress.ts'
import { toResponseError } from '../errors.ts'
import { ResponseOutput, type ResponseStreamEvent } from './output.ts'
import { toHead } from './render.ts'
import type { ResponsesRequest } from './schema.ts'
import { listCallable } from './tools.ts'

export type ResponseObject = ReturnType<typeof toHead>
/** Stores a response object. Returns whether it is stored. */
export type SaveResponse = (response: ResponseObject) => Promise<boolean>

export class ResponseEvents {
  readonly #generation: Generation
  readonly #head: ResponseObject
  readonly #output: ResponseOutput
  readonly #save: SaveResponse | undefined
  /** Whether the request only warms up the cache. Its response has no output. */
  readonly #isWarmUp: boolean
  /** Absent unless the client asks for timings. */
  readonly #timings: AnswerTimings | undefined
  #reasoningTokens = 0
  #sequence = 0

  /** @param save called before the last event is sent. Undefined if the response is not stored */
  constructor(generation: Generation, body: ResponsesRequest, save?: SaveResponse) {
    this.#generation = generation
    this.#head = toHead(generation, body, save !== undefined)
    this.#save = save
    this.#isWarmUp = body.generate === false
    this.#timings = body.timings_per_token ? new AnswerTimings() : undefined
    this.#output = new ResponseOutput({
      id: generation.id,
      hasSummary: body.reasoning?.summary !== undefined,
      hasEncryptedContent: body.include?.includes('reasoning.encrypted_content') ?? false,
      tools: new Map(listCallable(body.tools).map((callable) => [callable.modelName, callable])),
    })
  }

  async *frames(): AsyncGenerator<string> {
    // These events are sent before the model starts, since clients expect them even if the model fails.
    yield this.#toFrame(this.#createEvent('created', this.#createResponse('in_progress')))
    yield this.#toFrame(this.#createEvent('in_progress', this.#createResponse('in_progress')))
    for await (const event of this.#generation) {
      const timings = this.#timings?.add(event)
      const measured = timings && { timings }
      for (const responseEvent of this.#toEvents(event))
        yield this.#toFrame({ ...responseEvent, ...(responseEvent.delta !== undefined && measured) })
      // Clients ignore further fields of an event that they know.
      if (event.type === 'progress') {
        const progress = this.#createEvent('in_progress', this.#createResponse('in_progress'))
        yield this.#toFrame({ ...progress, ...renderProgress(event), ...measured })
      }
      if (event.type === 'end') yield this.#toFrame({ ...(await this.#finish(event)), ...measured })
    }
  }

  /** Collects the complete response. Throws an `AbortError` if the generation was cancelled. */
  async collect(): Promise<unknown> {
    let last: ResponseStreamEvent | undefined
    let timings: object | undefined
    for await (const event of this.#generation) {
      Array.from(this.#toEvents(event))
      timings = this.#timings?.add(event)
      if (event.type === 'end') last = await this.#finish(event)
    }
    if (!last) throw answerCancelled()
    return timings ? { ...(last.response as object), timings } : last.response
  }

  /** Last frame of a failed response, with the output so far. */
  fail(error: LlmError): string {
    Array.from(this.#output.end(true))
    const response = this.#createResponse('failed', { error: toResponseError(error) })
    // Calls that the app ends must leave nothing behind: their API key or tenant is deleted.
    const isEnded = error.code === 'authentication' || error.code === 'permission'
    if (!isEnded) void this.#save?.(response)
    return this.#toFrame(this.#createEvent('failed', response))
  }

  *#toEvents(event: GenerateEvent): Generator<ResponseStreamEvent> {
    if (event.type === 'start' || event.type === 'prompt' || event.type === 'progress' || this.#isWarmUp)
      return
    if (event.type === 'end') {
      yield* this.#output.end(isCut(event))
      return
    }
    if (event.type === 'reasoning') this.#reasoningTokens += event.tokens
    yield* this.#output.push(event)
  }

  /** Stores the response, and returns the last event. */
  async #finish(event: FinalEvent): Promise<ResponseStreamEvent> {
    const usage = toUsage(event.usage, this.#reasoningTokens)
    // An incomplete tool call has been sent already, and must not look complete.
    const [status, fields] =
      !this.#isWarmUp && (isCut(event) || this.#output.isIncomplete)
        ? ['incomplete', { incomplete_details: { reason: 'max_output_tokens' } }]
        : ['completed', { completed_at: Math.floor(Date.now() / 1000) }]
    const response = this.#createResponse(status, { ...fields, usage })
    const store = (await this.#save?.(response)) ?? false
    return this.#createEvent(status, { ...response, store })
  }

  #createResponse(status: string, fields: object = {}): ResponseObject {
    return { ...this.#head, status, output: this.#output.items, ...fields }
  }

  #createEvent = (name: string, response: object): ResponseStreamEvent => ({
    type: `response.${name}`,
    response,
  })

  #toFrame({ type, ...fields }: ResponseStreamEvent): string {
    return eventFrame(type, JSON.stringify({ type, sequence_number: this.#sequence++, ...fields }))
  }
}

type FinalEvent = Extract<GenerateEvent, { type: 'end' }>

/** Whether a limit has ended the answer. */
const isCut = ({ finishReason }: FinalEvent): boolean =>
  finishReason === 'length' || finishReason === 'context'

const toUsage = ({ inputTokens, reusedTokens, outputTokens }: TokenUsage, reasoningTokens: number) => ({
  input_tokens: inputTokens,
  input_tokens_details: { cached_tokens: reusedTokens, cache_write_tokens: 0 },
  output_tokens: outputTokens,
  output_tokens_details: { reasoning_tokens: reasoningTokens },
  total_tokens: inputTokens + outputTokens,
})
