/**
 * From neutral events to the Anthropic API.
 * Shape: Anthropic API reference, "Create a Message", and its guide "Streaming messages".
 */
import type { Answer, FinishReason, TokenUsage } from '../../engine/events.ts'
import type { Generation } from '../../generate.ts'
import { eventFrame } from '../../http/streams.ts'

/** Breaks a silence. */
export const ping = eventFrame('ping', '{"type":"ping"}')

/** A whole answer. A model that says nothing has no block: clients send blocks back, and an empty one is invalid. */
export function message(generation: Generation, answer: Answer): object {
  return {
    ...head(generation),
    content: answer.text === '' ? [] : [{ type: 'text', text: answer.text, citations: null }],
    ...ending(answer),
    usage: toUsage(answer.usage),
  }
}

/** The frames of a streamed answer. */
export async function* events(generation: Generation): AsyncGenerator<string> {
  let open = false

  for await (const event of generation) {
    switch (event.type) {
      case 'start': {
        // No token yet: some clients add this number to the last one.
        const usage = toUsage({ ...event, outputTokens: 0 })
        yield frame('message_start', { message: { ...head(generation), content: [], ...noEnding, usage } })
        break
      }
      case 'text':
        if (!open) yield opening
        open = true
        // By hand: serialising whole frames costs more than the tokens in them.
        yield `${deltaStart}${JSON.stringify(event.text)}}}\n\n`
        break
      case 'end': {
        if (open) yield frame('content_block_stop', { index: 0 })
        const { cache_creation, service_tier, ...usage } = toUsage(event.usage)
        yield frame('message_delta', { delta: { ...ending(event), container: null }, usage })
        yield frame('message_stop', {})
      }
    }
  }
}

/** Clients read the name, and the type beside it. */
const frame = (type: string, fields: object): string => eventFrame(type, JSON.stringify({ type, ...fields }))

const opening = frame('content_block_start', {
  index: 0,
  content_block: { type: 'text', text: '', citations: null },
})
const deltaStart =
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":'

const head = ({ id, model }: Generation) => ({
  id: `msg_${id}`,
  type: 'message',
  role: 'assistant',
  model,
  container: null,
})

const noEnding = { stop_reason: null, stop_sequence: null, stop_details: null }

const ending = ({ reason, stopSequence }: Pick<Answer, 'reason' | 'stopSequence'>) => ({
  stop_reason: stopSequence === undefined ? stopReasons[reason] : 'stop_sequence',
  stop_sequence: stopSequence ?? null,
  stop_details: null,
})

const stopReasons = {
  stop: 'end_turn',
  length: 'max_tokens',
  context: 'model_context_window_exceeded',
  'tool-calls': 'tool_use',
} as const satisfies Record<FinishReason, string>

/** `input_tokens` has all of the prompt: what was reused was nobody's lease, and is not counted apart. */
const toUsage = ({ inputTokens, outputTokens }: Pick<TokenUsage, 'inputTokens' | 'outputTokens'>) => ({
  input_tokens: inputTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens: outputTokens,
  output_tokens_details: null,
  server_tool_use: null,
  service_tier: 'standard',
})
