/**
 * From neutral events to the Anthropic API.
 * Shape: Anthropic API reference, "Create a Message", and its guide "Streaming messages".
 */
import { createHash } from 'node:crypto'
import type { Generation } from '../../calls/generate.ts'
import type { Answer, FinishReason, GenerateEvent, TokenUsage } from '../../engine/events.ts'
import { eventFrame } from '../../http/streams.ts'
import type { MessagesRequest } from './schema.ts'

/** Breaks a silence. */
export const ping = eventFrame('ping', '{"type":"ping"}')

/** What clients get to see of thoughts: them, their signature alone, or nothing. */
export type Thoughts = 'shown' | 'omitted' | 'hidden'

/** Who does not ask for thoughts expects none, whatever the model does. */
export function thoughtsOf({ thinking }: Pick<MessagesRequest, 'thinking'>): Thoughts {
  if (!thinking || thinking.type === 'disabled') return 'hidden'
  return thinking.display === 'omitted' ? 'omitted' : 'shown'
}

/**
 * A whole answer. What says nothing has no block: clients send blocks back, and an empty one is invalid. Nor has a call
 * that was broken off. Throws an `AbortError` when the answer was cancelled.
 */
export async function message(
  generation: Generation,
  thoughts: Thoughts,
  stops: readonly string[] = [],
): Promise<object> {
  const said: Said[] = []
  let thinkingTokens = 0
  for await (const event of generation) {
    if (event.type === 'start' || event.type === 'prompt') continue
    if (event.type === 'tool-call') said.push({ ...event, text: '' })
    else if (event.type === 'end') {
      const broken = new Set(event.incompleteCalls)
      const content = said.filter(({ type, index = -1 }) => type !== 'tool-call' || !broken.has(index))
      const isCalling = content.some(({ type }) => type === 'tool-call')
      return {
        ...head(generation),
        content: content.map((one) => toBlock(one, thoughts)),
        ...ending(event, isCalling, stops),
        usage: toUsage(event.usage, thinkingTokens),
      }
    } else {
      if (event.type === 'reasoning') thinkingTokens += event.tokens
      if (event.type === 'reasoning' && thoughts === 'hidden') continue
      const { type, text } =
        event.type === 'tool-arguments' ? ({ type: 'tool-call', text: event.json } as const) : event
      const last = said.at(-1)
      if (last?.type === type) last.text += text
      else said.push({ type, text })
    }
  }
  throw new DOMException('The answer was cancelled.', 'AbortError')
}

/** What will be a block: pieces of one kind in a row. */
interface Said {
  readonly type: 'text' | 'reasoning' | 'tool-call'
  /** Of a call: its arguments. */
  text: string
  readonly index?: number
  readonly id?: string
  readonly name?: string
}

function toBlock({ type, text, id = '', name = '' }: Said, thoughts: Thoughts): object {
  if (type === 'text') return { ...empty.text, text }
  if (type === 'tool-call') return { ...toolUse(id, name), input: JSON.parse(text || '{}') }
  const signature = createHash(hash).update(text).digest('base64')
  return { ...empty.thinking, thinking: thoughts === 'shown' ? text : '', signature }
}

/** The frames of a streamed answer. */
export async function* events(
  generation: Generation,
  thoughts: Thoughts,
  stops: readonly string[] = [],
): AsyncGenerator<string> {
  const blocks = new BlockFrames(thoughts)
  let thinkingTokens = 0

  for await (const event of generation) {
    if (event.type === 'start') {
      // No token yet: some clients add this number to the last one.
      const usage = toUsage({ ...event, outputTokens: 0 })
      yield frame('message_start', { message: { ...head(generation), content: [], ...noEnding, usage } })
    } else if (event.type === 'end') {
      const { cache_creation, service_tier, ...usage } = toUsage(event.usage, thinkingTokens)
      const isCalling = blocks.calls > (event.incompleteCalls?.length ?? 0)
      const delta = { ...ending(event, isCalling, stops), container: null }
      yield blocks.close() + frame('message_delta', { delta, usage })
      yield frame('message_stop', {})
    } else if (event.type !== 'prompt') {
      if (event.type === 'reasoning') thinkingTokens += event.tokens
      // Nothing at all, where it is hidden: the silence is broken by pings.
      const frames = blocks.say(event)
      if (frames !== '') yield frames
    }
  }
}

type Piece = Exclude<GenerateEvent, { type: 'start' | 'prompt' | 'end' }>

/** One block after the other, each closed before the next is opened: clients go by the last one. */
class BlockFrames {
  calls = 0
  readonly #thoughts: Thoughts
  #index = -1
  #open: 'text' | 'thinking' | 'tool_use' | undefined
  #signature = createHash(hash)

  constructor(thoughts: Thoughts) {
    this.#thoughts = thoughts
  }

  /** No frame, where nothing of it is shown. */
  say(piece: Piece): string {
    switch (piece.type) {
      case 'text':
        return this.#opening('text') + this.#delta(`"type":"text_delta","text":${JSON.stringify(piece.text)}`)
      case 'reasoning': {
        if (this.#thoughts === 'hidden') return ''
        const opening = this.#opening('thinking')
        this.#signature.update(piece.text)
        return this.#thoughts === 'omitted'
          ? opening
          : opening + this.#delta(`"type":"thinking_delta","thinking":${JSON.stringify(piece.text)}`)
      }
      case 'tool-call':
        this.calls++
        return this.#start('tool_use', toolUse(piece.id, piece.name))
      case 'tool-arguments':
        return this.#delta(`"type":"input_json_delta","partial_json":${JSON.stringify(piece.json)}`)
    }
  }

  close(): string {
    const open = this.#open
    if (open === undefined) return ''
    this.#open = undefined
    const signature =
      open === 'thinking'
        ? this.#delta(`"type":"signature_delta","signature":"${this.#signature.digest('base64')}"`)
        : ''
    return signature + frame('content_block_stop', { index: this.#index })
  }

  #opening(type: 'text' | 'thinking'): string {
    if (this.#open === type) return ''
    return this.#start(type, empty[type])
  }

  #start(type: 'text' | 'thinking' | 'tool_use', block: object): string {
    const closing = this.close()
    this.#open = type
    this.#index++
    if (type === 'thinking') this.#signature = createHash(hash)
    return closing + frame('content_block_start', { index: this.#index, content_block: block })
  }

  /** By hand: serialising whole frames costs more than the tokens in them. */
  #delta(fields: string): string {
    return `${deltaStart}${this.#index},"delta":{${fields}}}\n\n`
  }
}

/** Clients read the name, and the type beside it. */
const frame = (type: string, fields: object): string => eventFrame(type, JSON.stringify({ type, ...fields }))

const deltaStart = 'event: content_block_delta\ndata: {"type":"content_block_delta","index":'

const empty = {
  text: { type: 'text', text: '', citations: null },
  thinking: { type: 'thinking', thinking: '', signature: '' },
} as const

/** Of the thoughts: clients hand it back with them, and some refuse thoughts without one. Nobody here asks for it. */
const hash = 'sha256'

const toolUse = (id: string, name: string) => ({
  type: 'tool_use',
  id: `toolu_${id.replace(/^call_/, '')}`,
  name,
  input: {},
  caller: { type: 'direct' },
})

const head = ({ id, model }: Generation) => ({
  id: `msg_${id}`,
  type: 'message',
  role: 'assistant',
  model,
  container: null,
})

const noEnding = { stop_reason: null, stop_sequence: null, stop_details: null }

/**
 * @param isCalling whether a whole call is among the blocks: agents pass over one that no `tool_use` announces
 * @param stops the client's: what the model's own ones end has ended by itself
 */
function ending(
  { reason, stopSequence }: Pick<Answer, 'reason' | 'stopSequence'>,
  isCalling: boolean,
  stops: readonly string[],
) {
  const said = reason === 'stop' && isCalling ? 'tool-calls' : reason
  const isStopped = said === 'stop' && stopSequence !== undefined && stops.includes(stopSequence)
  return {
    stop_reason: isStopped ? 'stop_sequence' : stopReasons[said],
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

/** Disjoint: together the first three are the prompt. What was reused without a breakpoint is not counted apart. */
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
    service_tier: 'standard',
  }
}
