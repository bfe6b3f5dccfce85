/** A response on its way: as events, and as the object that they lead to. Shape: OpenAI API reference, "Streaming events". */

import type { Generation } from '../../../calls/generate.ts'
import type { GenerateEvent, TokenUsage } from '../../../engine/events.ts'
import type { LlmError } from '../../../errors.ts'
import { eventFrame } from '../../../http/streams.ts'
import { failureOf } from '../errors.ts'
import { type Event, Output } from './output.ts'
import { headOf } from './render.ts'
import type { ResponsesRequest } from './schema.ts'

export class ResponseEvents {
  readonly #generation: Generation
  readonly #head: ReturnType<typeof headOf>
  readonly #output: Output
  #reasoningTokens = 0
  #sequence = 0

  constructor(generation: Generation, body: ResponsesRequest) {
    this.#generation = generation
    this.#head = headOf(generation, body)
    this.#output = new Output({
      id: generation.id,
      summary: body.reasoning?.summary !== undefined,
      seal: body.include?.includes('reasoning.encrypted_content') ?? false,
    })
  }

  async *frames(): AsyncGenerator<string> {
    // Before the model has begun: whatever comes next, clients want this first.
    yield this.#frame(this.#event('created', this.#response('in_progress')))
    yield this.#frame(this.#event('in_progress', this.#response('in_progress')))
    for await (const event of this.#generation) for (const told of this.#tell(event)) yield this.#frame(told)
  }

  /** The response when it has ended. Throws an `AbortError` when the answer was cancelled. */
  async whole(): Promise<unknown> {
    let last: Event | undefined
    for await (const event of this.#generation) for (const told of this.#tell(event)) last = told
    if (!last?.response) throw new DOMException('The answer was cancelled.', 'AbortError')
    return last.response
  }

  /** The last frame of one that went wrong, with what was said until then. */
  failed(error: LlmError): string {
    Array.from(this.#output.end(true))
    return this.#frame(this.#event('failed', this.#response('failed', { error: failureOf(error) })))
  }

  *#tell(event: GenerateEvent): Generator<Event> {
    if (event.type === 'start' || event.type === 'prompt') return
    if (event.type !== 'end') {
      if (event.type === 'reasoning') this.#reasoningTokens += event.tokens
      yield* this.#output.say(event)
      return
    }
    const isCut = event.reason === 'length' || event.reason === 'context'
    yield* this.#output.end(isCut)
    const usage = toUsage(event.usage, this.#reasoningTokens)
    // What was said of a call that the model broke off cannot be taken back, and must not look whole.
    if (isCut || this.#output.isIncomplete) {
      const details = { incomplete_details: { reason: 'max_output_tokens' } }
      yield this.#event('incomplete', this.#response('incomplete', { ...details, usage }))
    } else {
      const completed_at = Math.floor(Date.now() / 1000)
      yield this.#event('completed', this.#response('completed', { completed_at, usage }))
    }
  }

  #response(status: string, fields: object = {}): object {
    return { ...this.#head, status, output: this.#output.items, ...fields }
  }

  #event = (name: string, response: object): Event => ({ type: `response.${name}`, response })

  #frame({ type, ...fields }: Event): string {
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
