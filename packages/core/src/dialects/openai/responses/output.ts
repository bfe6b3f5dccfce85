/**
 * What a response consists of, item by item, and the events that tell of each.
 * Shape: OpenAI API reference, "The response object", `output`, and "Streaming events".
 */
import type { DrawnToken, GenerateEvent } from '../../../engine/events.ts'
import { toDrawn } from '../render.ts'
import { sealed } from './opaque-reasoning.ts'

/** Without its number, which counts all of a response. */
export interface Event {
  readonly type: string
  readonly [field: string]: unknown
}

export interface OutputOptions {
  /** Of the response. */
  readonly id: string
  /** Thoughts are told as summaries, too: some clients show nothing else of them. */
  readonly summary: boolean
  /** Thoughts come back sealed, from clients that want it so. */
  readonly seal: boolean
}

type Piece = Exclude<GenerateEvent, { type: 'start' | 'prompt' | 'end' }>
type Status = 'in_progress' | 'completed' | 'incomplete'
interface Item {
  readonly id: string
  readonly type: 'message' | 'reasoning' | 'function_call'
  readonly status: Status
  readonly [field: string]: unknown
}

/** Where texts of an item are, and what events about them are called. */
const places = {
  output_text: { list: 'content', index: 'content_index', part: 'content_part', text: 'output_text' },
  reasoning_text: { list: 'content', index: 'content_index', part: 'content_part', text: 'reasoning_text' },
  summary_text: {
    list: 'summary',
    index: 'summary_index',
    part: 'reasoning_summary_part',
    text: 'reasoning_summary_text',
  },
} as const
type Place = keyof typeof places

/** One item after the other, each done before the next is added: clients go by their order. */
export class Output {
  /** As they stand, the one that is being said among them. */
  readonly items: Item[] = []
  readonly #options: OutputOptions
  /** Of the item that is being said. */
  #text = ''
  #logprobs: object[] = []
  #isOpen = false

  constructor(options: OutputOptions) {
    this.#options = options
  }

  *say(piece: Piece): Generator<Event> {
    if (piece.type === 'tool-call') {
      const call = { call_id: piece.id, name: piece.name, arguments: '' }
      yield* this.#add({ id: this.#newId('fc'), type: 'function_call', status: 'in_progress', ...call })
    } else if (piece.type === 'tool-arguments') {
      this.#text += piece.json
      yield { type: 'response.function_call_arguments.delta', ...this.#at(), delta: piece.json }
    } else {
      yield* this.#begin(piece.type === 'text' ? 'message' : 'reasoning')
      yield* this.#delta(piece.text, piece.logprobs)
    }
  }

  /** @param isCut by a limit: the last item is no whole one then */
  *end(isCut: boolean): Generator<Event> {
    yield* this.#close(isCut)
    // Agents wait for a message or a call, and would ask again and again.
    if (isCut || this.items.some(({ type }) => type !== 'reasoning')) return
    yield* this.#begin('message')
    yield* this.#close(false)
  }

  get isIncomplete(): boolean {
    return this.items.some(({ status }) => status === 'incomplete')
  }

  *#begin(type: 'message' | 'reasoning'): Generator<Event> {
    if (this.#isOpen && this.items.at(-1)?.type === type) return
    const item = { type, status: 'in_progress' } as const
    if (type === 'message')
      yield* this.#add({ id: this.#newId('msg'), ...item, role: 'assistant', content: [] })
    else yield* this.#add({ id: this.#newId('rs'), ...item, summary: [], content: [] })
    for (const place of this.#places())
      yield { type: `response.${places[place].part}.added`, ...this.#at(place), part: this.#part(place) }
  }

  *#add(item: Item): Generator<Event> {
    yield* this.#close(false)
    this.#text = ''
    this.#logprobs = []
    this.#isOpen = true
    this.items.push(item)
    yield { type: 'response.output_item.added', output_index: this.items.length - 1, item }
  }

  *#delta(text: string, tokens: readonly DrawnToken[] = []): Generator<Event> {
    this.#text += text
    const logprobs = tokens.map(toDrawn)
    for (const one of logprobs) this.#logprobs.push(one)
    for (const place of this.#places())
      yield {
        type: `response.${places[place].text}.delta`,
        ...this.#at(place),
        delta: text,
        ...(place === 'output_text' && { logprobs }),
      }
  }

  *#close(isCut: boolean): Generator<Event> {
    const item = this.items.at(-1)
    if (!item || !this.#isOpen) return
    this.#isOpen = false
    const done = { ...item, ...this.#whole(item), status: this.#statusOf(item, isCut) }
    if (item.type === 'function_call') {
      const said = { name: item.name, arguments: this.#text }
      yield { type: 'response.function_call_arguments.done', ...this.#at(), ...said }
    }
    for (const place of this.#places()) {
      const part = this.#part(place)
      const { type: _, annotations: __, ...said } = part
      yield { type: `response.${places[place].text}.done`, ...this.#at(place), ...said }
      yield { type: `response.${places[place].part}.done`, ...this.#at(place), part }
    }
    this.items.splice(-1, 1, done)
    yield { type: 'response.output_item.done', output_index: this.items.length - 1, item: done }
  }

  /** What the item that is being said has said. */
  #whole({ type }: Item): object {
    if (type === 'function_call') return { arguments: this.#text }
    const lists = this.#places().map((place) => [places[place].list, [this.#part(place)]] as const)
    const seal = type === 'reasoning' && this.#options.seal && { encrypted_content: sealed(this.#text) }
    return { ...Object.fromEntries(lists), ...seal }
  }

  /** A call may have been broken off by the model itself, and others come after it. */
  #statusOf({ type }: Item, isCut: boolean): Status {
    const isWhole = type === 'function_call' ? isJson(this.#text) : !isCut
    return isWhole ? 'completed' : 'incomplete'
  }

  /** Those of the item that is being said. */
  #places(): readonly Place[] {
    const type = this.items.at(-1)?.type
    if (type === 'function_call') return []
    if (type === 'message') return ['output_text']
    return this.#options.summary ? ['reasoning_text', 'summary_text'] : ['reasoning_text']
  }

  #part(place: Place) {
    const text = this.#text
    return place === 'output_text'
      ? { type: place, text, annotations: [], logprobs: this.#logprobs }
      : { type: place, text }
  }

  #at(place?: Place): object {
    const index = place && { [places[place].index]: 0 }
    return { item_id: this.items.at(-1)?.id, output_index: this.items.length - 1, ...index }
  }

  #newId(prefix: string): string {
    return `${prefix}_${this.#options.id}_${this.items.length}`
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
