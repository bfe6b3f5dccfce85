/**
 * Renders a response as a stream of events, or as the response object in its last event.
 * Shape: OpenAI API reference, "Streaming events".
 */

import type { Generation } from '../../../calls/generation.ts'
import { answerCancelled, type GenerateEvent, type TokenUsage } from '../../../engine/events.ts'
import type { LlmError } from '../../../errors.ts'
import { eventFrame } from '../../../http/streams.ts'
import { toResponseError } from '../errors.ts'
import { ResponseOutput, type ResponseStreamEvent } from './output.ts'
import { toHead } from './render.ts'
import type { ResponsesRequest } from './schema.ts'

export class ResponseEvents {
  readonly #generation: Generation
  readonly #head: ReturnType<typeof toHead>
  readonly #output: ResponseOutput
  #reasoningTokens = 0
  #sequence = 0

  constructor(generation: Generation, body: ResponsesRequest) {
    this.#generation = generation
    this.#head = toHead(generation, body)
    this.#output = new ResponseOutput({
      id: generation.id,
      hasSummary: body.reasoning?.summary !== undefined,
      hasEncryptedContent: body.include?.includes('reasoning.encrypted_content') ?? false,
    })
  }

  async *frames(): AsyncGenerator<string> {
    // These events are sent before the model starts, since clients expect them even if the model fails.
    yield this.#toFrame(this.#createEvent('created', this.#createResponse('in_progress')))
    yield this.#toFrame(this.#createEvent('in_progress', this.#createResponse('in_progress')))
    for await (const event of this.#generation)
      for (const responseEvent of this.#toEvents(event)) yield this.#toFrame(responseEvent)
  }

  /** Collects the complete response. Throws an `AbortError` if the generation was cancelled. */
  async collect(): Promise<unknown> {
    let last: ResponseStreamEvent | undefined
    for await (const event of this.#generation)
      for (const responseEvent of this.#toEvents(event)) last = responseEvent
    if (!last?.response) throw answerCancelled()
    return last.response
  }

  /** Last frame of a failed response, with the output so far. */
  fail(error: LlmError): string {
    Array.from(this.#output.end(true))
    return this.#toFrame(
      this.#createEvent('failed', this.#createResponse('failed', { error: toResponseError(error) })),
    )
  }

  *#toEvents(event: GenerateEvent): Generator<ResponseStreamEvent> {
    if (event.type === 'start' || event.type === 'prompt') return
    if (event.type !== 'end') {
      if (event.type === 'reasoning') this.#reasoningTokens += event.tokens
      yield* this.#output.push(event)
      return
    }
    const isCut = event.finishReason === 'length' || event.finishReason === 'context'
    yield* this.#output.end(isCut)
    const usage = toUsage(event.usage, this.#reasoningTokens)
    // An incomplete tool call has been sent already, and must not look complete.
    if (isCut || this.#output.isIncomplete) {
      const details = { incomplete_details: { reason: 'max_output_tokens' } }
      yield this.#createEvent('incomplete', this.#createResponse('incomplete', { ...details, usage }))
    } else {
      const completed_at = Math.floor(Date.now() / 1000)
      yield this.#createEvent('completed', this.#createResponse('completed', { completed_at, usage }))
    }
  }

  #createResponse(status: string, fields: object = {}): object {
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

const toUsage = ({ inputTokens, reusedTokens, outputTokens }: TokenUsage, reasoningTokens: number) => ({
  input_tokens: inputTokens,
  input_tokens_details: { cached_tokens: reusedTokens, cache_write_tokens: 0 },
  output_tokens: outputTokens,
  output_tokens_details: { reasoning_tokens: reasoningTokens },
  total_tokens: inputTokens + outputTokens,
})
