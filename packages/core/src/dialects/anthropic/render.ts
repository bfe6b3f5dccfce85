/**
 * Renders engine events as responses of the Anthropic API.
 * Shape: Anthropic API reference, "Create a Message", and its guide "Streaming messages".
 */
import { createHash } from 'node:crypto'
import type { Generation } from '../../calls/generation.ts'
import {
  answerCancelled,
  type ContentEvent,
  type FinishReason,
  type GenerateResult,
  type TokenUsage,
} from '../../engine/events.ts'
import { eventFrame } from '../../http/streams.ts'
import type { MessagesRequest } from './schema.ts'

/** Heartbeat frame. */
export const ping = eventFrame('ping', '{"type":"ping"}')

/** How reasoning is shown: in full, as a signature without text, or not at all. */
export type ThinkingDisplay = 'shown' | 'omitted' | 'hidden'

/** Clients that do not enable thinking expect no thinking blocks, even if the model reasons. */
export function toThinkingDisplay({ thinking }: Pick<MessagesRequest, 'thinking'>): ThinkingDisplay {
  if (!thinking || thinking.type === 'disabled') return 'hidden'
  return thinking.display === 'omitted' ? 'omitted' : 'shown'
}

/**
 * Renders a complete response. Omits incomplete tool calls. Adds no empty text block: clients would send it
 * back, and it is invalid in a request. Throws an `AbortError` if the generation was cancelled.
 */
export async function renderMessage(
  generation: Generation,
  display: ThinkingDisplay,
  stopSequences: readonly string[] = [],
): Promise<object> {
  const blocks: CollectedBlock[] = []
  let thinkingTokens = 0
  for await (const event of generation) {
    if (event.type === 'start' || event.type === 'prompt' || event.type === 'progress') continue
    if (event.type === 'tool-call') blocks.push({ ...event, text: '' })
    else if (event.type === 'end') {
      const broken = new Set(event.incompleteCalls)
      const content = blocks.filter(({ type, index = -1 }) => type !== 'tool-call' || !broken.has(index))
      const isCalling = content.some(({ type }) => type === 'tool-call')
      return {
        ...toHead(generation),
        content: content.map((one) => toBlock(one, display)),
        ...toEnding(event, isCalling, stopSequences),
        usage: {
          ...toUsage(event.usage, thinkingTokens),
          service_tier: generation.isBatchItem ? 'batch' : 'standard',
        },
      }
    } else {
      if (event.type === 'reasoning') thinkingTokens += event.tokens
      if (event.type === 'reasoning' && display === 'hidden') continue
      const { type, text } =
        event.type === 'tool-arguments' ? ({ type: 'tool-call', text: event.json } as const) : event
      const last = blocks.at(-1)
      if (last?.type === type) last.text += text
      else blocks.push({ type, text })
    }
  }
  throw answerCancelled()
}

/** Consecutive events of one type, which become one block. */
interface CollectedBlock {
  readonly type: 'text' | 'reasoning' | 'tool-call'
  /** Text, or the arguments of a tool call as JSON. */
  text: string
  readonly index?: number
  readonly id?: string
  readonly name?: string
}

function toBlock({ type, text, id = '', name = '' }: CollectedBlock, display: ThinkingDisplay): object {
  if (type === 'text') return { ...emptyBlocks.text, text }
  if (type === 'tool-call') return { ...toToolUse(id, name), input: JSON.parse(text || '{}') }
  const signature = createHash(hashAlgorithm).update(text).digest('base64')
  return { ...emptyBlocks.thinking, thinking: display === 'shown' ? text : '', signature }
}

/** Frames of a streamed response. */
export async function* renderEvents(
  generation: Generation,
  display: ThinkingDisplay,
  stopSequences: readonly string[] = [],
): AsyncGenerator<string> {
  const blocks = new BlockFrames(display)
  let thinkingTokens = 0

  for await (const event of generation) {
    if (event.type === 'start') {
      // Output tokens are 0 here, since some clients add this count to the final count.
      const usage = { ...toUsage({ ...event, outputTokens: 0 }), service_tier: 'standard' }
      yield toFrame('message_start', { message: { ...toHead(generation), content: [], ...noEnding, usage } })
    } else if (event.type === 'end') {
      const { cache_creation, ...usage } = toUsage(event.usage, thinkingTokens)
      const isCalling = blocks.callCount > (event.incompleteCalls?.length ?? 0)
      const delta = { ...toEnding(event, isCalling, stopSequences), container: null }
      yield blocks.close() + toFrame('message_delta', { delta, usage })
      yield toFrame('message_stop', {})
    } else if (event.type !== 'prompt' && event.type !== 'progress') {
      if (event.type === 'reasoning') thinkingTokens += event.tokens
      // Hidden reasoning has no frames. Meanwhile, clients get heartbeats.
      const frames = blocks.push(event)
      if (frames !== '') yield frames
    }
  }
}

/** Closes each block before the next block opens, since clients append deltas to the last block. */
class BlockFrames {
  callCount = 0
  readonly #display: ThinkingDisplay
  #index = -1
  #openType: 'text' | 'thinking' | 'tool_use' | undefined
  #signature = createHash(hashAlgorithm)

  constructor(display: ThinkingDisplay) {
    this.#display = display
  }

  /** Renders an event as frames. Returns an empty text if the event is hidden. */
  push(event: ContentEvent): string {
    switch (event.type) {
      case 'text':
        return (
          this.#ensureOpen('text') + this.#delta(`"type":"text_delta","text":${JSON.stringify(event.text)}`)
        )
      case 'reasoning': {
        if (this.#display === 'hidden') return ''
        const opening = this.#ensureOpen('thinking')
        this.#signature.update(event.text)
        return this.#display === 'omitted'
          ? opening
          : opening + this.#delta(`"type":"thinking_delta","thinking":${JSON.stringify(event.text)}`)
      }
      case 'tool-call':
        this.callCount++
        return this.#startBlock('tool_use', toToolUse(event.id, event.name))
      case 'tool-arguments':
        return this.#delta(`"type":"input_json_delta","partial_json":${JSON.stringify(event.json)}`)
    }
  }

  close(): string {
    const open = this.#openType
    if (open === undefined) return ''
    this.#openType = undefined
    const signature =
      open === 'thinking'
        ? this.#delta(`"type":"signature_delta","signature":"${this.#signature.digest('base64')}"`)
        : ''
    return signature + toFrame('content_block_stop', { index: this.#index })
  }

  #ensureOpen(type: 'text' | 'thinking'): string {
    if (this.#openType === type) return ''
    return this.#startBlock(type, emptyBlocks[type])
  }

  #startBlock(type: 'text' | 'thinking' | 'tool_use', block: object): string {
    const closing = this.close()
    this.#openType = type
    this.#index++
    if (type === 'thinking') this.#signature = createHash(hashAlgorithm)
    return closing + toFrame('content_block_start', { index: this.#index, content_block: block })
  }

  /** Concatenates JSON by hand, since serialising whole frames costs more than generating their tokens. */
  #delta(fields: string): string {
    return `${deltaStart}${this.#index},"delta":{${fields}}}\n\n`
  }
}

/** Some clients read the name of an event, others the `type` in its data. */
const toFrame = (type: string, fields: object): string =>
  eventFrame(type, JSON.stringify({ type, ...fields }))

const deltaStart = 'event: content_block_delta\ndata: {"type":"content_block_delta","index":'

/** A text without citations has no such field: the AI SDK rejects null. */
const emptyBlocks = {
  text: { type: 'text', text: '' },
  thinking: { type: 'thinking', thinking: '', signature: '' },
} as const

/**
 * Hash for the signatures of reasoning. Some clients reject reasoning without a signature, but this server
 * checks no signatures.
 */
const hashAlgorithm = 'sha256'

const toToolUse = (id: string, name: string) => ({
  type: 'tool_use',
  id: `toolu_${id.replace(/^call_/, '')}`,
  name,
  input: {},
  caller: { type: 'direct' },
})

const toHead = ({ id, model }: Generation) => ({
  id: `msg_${id}`,
  type: 'message',
  role: 'assistant',
  model,
  container: null,
})

const noEnding = { stop_reason: null, stop_sequence: null, stop_details: null }

/**
 * @param isCalling whether there is a complete tool call. Agents run it only if `stop_reason` is `tool_use`
 * @param stopSequences stop sequences of the request. Others, such as the model's, are reported as `end_turn`
 */
function toEnding(
  { finishReason, stopSequence }: Pick<GenerateResult, 'finishReason' | 'stopSequence'>,
  isCalling: boolean,
  stopSequences: readonly string[],
) {
  const effectiveReason = finishReason === 'stop' && isCalling ? 'tool-calls' : finishReason
  const isStopped =
    effectiveReason === 'stop' && stopSequence !== undefined && stopSequences.includes(stopSequence)
  return {
    stop_reason: isStopped ? 'stop_sequence' : stopReasons[effectiveReason],
    stop_sequence: isStopped ? stopSequence : null,
    stop_details: null,
  }
}

const stopReasons = {
  stop: 'end_turn',
  length: 'max_tokens',
  context: 'model_context_window_exceeded',
  'tool-calls': 'tool_use',
} as const satisfies Record<FinishReason, string>

/**
 * The three input counts add up to the tokens of the prompt. `input_tokens` includes reused tokens that no
 * breakpoint covers.
 */
function toUsage(
  { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens }: TokenUsage,
  thinkingTokens = 0,
) {
  const { '5m': short, '1h': long } = cacheWriteTokens
  return {
    input_tokens: inputTokens - cacheReadTokens - short - long,
    cache_creation_input_tokens: short + long,
    cache_read_input_tokens: cacheReadTokens,
    cache_creation: { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: long },
    output_tokens: outputTokens,
    output_tokens_details: thinkingTokens > 0 ? { thinking_tokens: thinkingTokens } : null,
    server_tool_use: null,
  }
}
