/** Turns events of the Anthropic API into pieces. Shape: Anthropic's guide "Streaming messages". */
import type { EventSourceMessage } from 'eventsource-parser'
import type { LlmError } from '../../../errors.ts'
import { isRecord } from '../../../util/is-record.ts'
import type { FinishReason } from '../../events.ts'
import { parseRecord, readOptionalString, readRecord, readString } from '../response-fields.ts'
import type { AnswerPiece, AnswerReader } from '../upstream-api.ts'
import { invalidResponse, toInBandError } from '../upstream-errors.ts'
import { MessageUsage } from './usage.ts'

/** Pieces of an answer that is no stream and has no content. */
export function toEmptyAnswer(body: unknown): readonly AnswerPiece[] {
  const { usage } = readRecord(body, 'the answer')
  const counts = new MessageUsage()
  counts.add(usage)
  return [{ type: 'end', finishReason: 'length', usage: counts.toReported() }]
}

export class EventReader implements AnswerReader<EventSourceMessage> {
  readonly #model: string
  readonly #usage = new MessageUsage()
  /** The tool call that is open. */
  #call: { readonly index: unknown; readonly input: unknown; hasArguments: boolean } | undefined
  #stopReason: string | undefined
  #stopSequence: string | undefined

  /** @param model name that the caller asked for */
  constructor(model: string) {
    this.#model = model
  }

  /** Unknown events and blocks are ignored, as the API asks of its clients. */
  read({ data }: EventSourceMessage): readonly AnswerPiece[] {
    if (data === '[DONE]') return []
    const event = parseRecord(data)
    switch (event.type) {
      case 'content_block_delta':
        return this.#addDelta(event.index, readRecord(event.delta, '`delta`'))
      case 'message_start':
        this.#usage.add(readRecord(event.message, '`message`').usage)
        return [{ type: 'start', usage: this.#usage.toReported() }]
      case 'content_block_start':
        return [...this.#endCall(), ...this.#startBlock(event.index, event.content_block)]
      case 'message_delta':
        this.#addEnding(event)
        return this.#stopReason === 'max_tokens' ? [] : this.#endCall()
      case 'message_stop':
        return [this.#end()]
      case 'error':
        throw toError(event.error, this.#model)
      default:
        return []
    }
  }

  #startBlock(index: unknown, value: unknown): readonly AnswerPiece[] {
    const block = readRecord(value, '`content_block`')
    if (block.type === 'text') return toText('text', block.text)
    if (block.type === 'thinking') return toText('reasoning', block.thinking)
    if (block.type !== 'tool_use') return []
    this.#call = { index, input: block.input, hasArguments: false }
    const id = readString(block.id, 'the id of a tool call').replace(/^toolu_/, 'call_')
    return [{ type: 'tool-call', id, name: readString(block.name, 'the name of a tool') }]
  }

  #addDelta(index: unknown, delta: Record<string, unknown>): readonly AnswerPiece[] {
    if (delta.type === 'text_delta') return toText('text', delta.text)
    if (delta.type === 'thinking_delta') return toText('reasoning', delta.thinking)
    if (delta.type !== 'input_json_delta') return []
    const json = readString(delta.partial_json, '`partial_json`')
    // The other calls are of tools that the server runs.
    const call = this.#call
    if (json === '' || !call || call.index !== index) return []
    call.hasArguments = true
    return [{ type: 'tool-arguments', json }]
  }

  /** A call without deltas has its arguments in its first event, or none. A call that the limit cut stays incomplete. */
  #endCall(): readonly AnswerPiece[] {
    const call = this.#call
    this.#call = undefined
    if (!call || call.hasArguments) return []
    return [{ type: 'tool-arguments', json: JSON.stringify(isRecord(call.input) ? call.input : {}) }]
  }

  #addEnding({ delta, usage }: Record<string, unknown>): void {
    const { stop_reason: reason, stop_sequence: sequence } = readRecord(delta, '`delta`')
    this.#stopReason = readOptionalString(reason, '`stop_reason`') ?? this.#stopReason
    this.#stopSequence = readOptionalString(sequence, '`stop_sequence`') ?? this.#stopSequence
    this.#usage.add(usage)
  }

  #end(): AnswerPiece {
    if (this.#stopReason === undefined) throw invalidResponse('the answer has no `stop_reason`')
    return {
      type: 'end',
      finishReason: finishReasons[this.#stopReason] ?? 'stop',
      stopSequence: this.#stopReason === 'stop_sequence' ? this.#stopSequence : undefined,
      usage: this.#usage.toReported(),
    }
  }
}

function toText(type: 'text' | 'reasoning', value: unknown): readonly AnswerPiece[] {
  const text = readString(value, type === 'text' ? '`text`' : '`thinking`')
  return text === '' ? [] : [{ type, text }]
}

/** A server that has sent its headers early sends any error as an event. */
function toError(error: unknown, model: string): LlmError {
  const { type } = readRecord(error, '`error`')
  return toInBandError(error, model, statuses[String(type)])
}

/** Shape: Anthropic API reference, "Errors". */
const statuses: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  overloaded_error: 529,
}

/** All others end the answer as the model or the server wants, such as `refusal`. */
const finishReasons: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'context',
  tool_use: 'tool-calls',
}
