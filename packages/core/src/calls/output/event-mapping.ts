/**
 * Passes the events of one answer through a mapper of the host app. Whatever the mapper returns, the answer keeps
 * its token counts and the order of its events.
 */
import type { ContentEvent, GenerateEvent, PromptToken } from '../../engine/events.ts'
import { isRecord } from '../../util/is-record.ts'
import { tryParseJson } from '../../util/try-parse-json.ts'
import { tokensOf } from './answer-usage.ts'

/**
 * Maps the events of one answer, in order. Returns the events for the reader: none to withhold the event,
 * several to send what it has withheld. The last event, `end`, is the last chance to send it.
 */
export type EventMapper = (event: GenerateEvent) => GenerateEvent | readonly GenerateEvent[] | undefined

/** Returns the events for the reader. Throws an error that ends the answer. */
export type EventTransform = (event: GenerateEvent) => readonly GenerateEvent[]

type EndEvent = Extract<GenerateEvent, { type: 'end' }>

export class EventMapping {
  readonly #map: EventMapper
  readonly #toolCalls = new ToolCallOrder()
  /** Content of the events that the mapper has got and not returned. */
  readonly #given = new WeakMap<object, string>()
  #givenCount = 0
  /** Tokens of given events that no returned event counts yet. */
  readonly #withheldTokens = { reasoning: 0, other: 0 }
  #hasReturnedContent = false
  /** Whether the mapper has returned content that it has not got. */
  #isChanged = false

  constructor(map: EventMapper) {
    this.#map = map
  }

  /** Throws a `TypeError` if `mapEvents` has returned something else than a function or nothing. */
  static of(map: EventMapper | undefined): EventMapping | undefined {
    if (map === undefined) return undefined
    if (typeof map !== 'function')
      throw new TypeError(`Expected \`mapEvents\` to return a function or undefined, got ${String(map)}`)
    return new EventMapping(map)
  }

  /** Throws a `TypeError` if the mapper returns something else than events in their order. */
  apply(event: GenerateEvent): readonly GenerateEvent[] {
    if (isContent(event)) this.#onGiven(event)
    const returned: unknown = this.#map(event)
    const events: readonly unknown[] =
      returned === undefined ? [] : Array.isArray(returned) ? returned : [returned]
    if (event.type === 'start') {
      expectType(events[0], 'start')
      // The engine's own event, whose counts are those of the ledger.
      return [event, ...events.slice(1).map((one) => this.#check(one))]
    }
    if (event.type === 'end') {
      const last = expectType(events.at(-1), 'end')
      return [...events.slice(0, -1).map((one) => this.#check(one)), this.#toEnd(event, last)]
    }
    return events.map((one) => this.#check(one))
  }

  #onGiven(event: ContentEvent): void {
    this.#given.set(event, contentOf(event))
    this.#givenCount++
    this.#withheldTokens[event.type === 'reasoning' ? 'reasoning' : 'other'] += tokensOf(event)
  }

  /** Checks an event between `start` and `end`. */
  #check(event: unknown): GenerateEvent {
    if (!isRecord(event)) throw unexpected('an event, a list of events or nothing', event)
    if (isContentLike(event)) return this.#checkContent(event)
    if (event.type !== 'prompt' || !Array.isArray(event.tokens))
      throw unexpected('`start` first, then `prompt`, then content, and `end` last', event)
    if (this.#hasReturnedContent) throw unexpected('no `prompt` after content', event)
    return { type: 'prompt', tokens: event.tokens as readonly PromptToken[] }
  }

  #checkContent(event: ContentEvent): ContentEvent {
    this.#hasReturnedContent = true
    const isGiven = this.#given.get(event) === contentOf(event)
    if (this.#given.delete(event)) this.#givenCount--
    if (!isGiven) this.#isChanged = true
    if (event.type === 'tool-call') {
      this.#toolCalls.start(event)
      return event
    }
    const tokens = this.#claimTokens(event.type)
    if (event.type === 'tool-arguments') {
      this.#toolCalls.append(event)
      return tokens === event.tokens ? event : { ...event, tokens }
    }
    if (isGiven && tokens === event.tokens) return event
    const { logprobs, ...rest } = event
    // The tokens of changed text would reveal the original text.
    return { ...rest, tokens, ...(isGiven && logprobs && { logprobs }) }
  }

  /**
   * Returns the tokens that an event counts: all that no event counts yet. Only reasoning counts as such, so that
   * the reported reasoning tokens are exact.
   */
  #claimTokens(type: ContentEvent['type']): number {
    const withheld = this.#withheldTokens
    const tokens = withheld.reasoning + (type === 'reasoning' ? 0 : withheld.other)
    withheld.reasoning = 0
    if (type !== 'reasoning') withheld.other = 0
    return tokens
  }

  #toEnd(event: EndEvent, returned: EndEvent): EndEvent {
    const isChanged = this.#isChanged || this.#givenCount > 0
    if (isChanged) this.#toolCalls.expectComplete(returned.incompleteCalls)
    const { usage, timings, tokens } = event
    const { tokens: _, ...rest } = returned
    // The ids of the output would reveal the original text.
    return { ...rest, usage, timings, ...(tokens && !isChanged && { tokens }) }
  }
}

/** Checks the tool calls that a mapper returns. */
class ToolCallOrder {
  /** The arguments of each call so far, as JSON. */
  readonly #calls: string[] = []

  start(event: Extract<ContentEvent, { type: 'tool-call' }>): void {
    if (event.index !== this.#calls.length)
      throw unexpected(`the tool call with the index ${this.#calls.length}`, event)
    this.#calls.push('')
  }

  append(event: Extract<ContentEvent, { type: 'tool-arguments' }>): void {
    const last = this.#calls.length - 1
    if (last < 0 || event.index !== last)
      throw unexpected('the arguments of a tool call directly after it', event)
    this.#calls[last] += event.json
  }

  expectComplete(incompleteCalls: readonly number[] = []): void {
    for (const [index, json] of this.#calls.entries())
      if (json !== '' && !incompleteCalls.includes(index) && !isRecord(tryParseJson(json)))
        throw new TypeError(
          `Expected the mapper to return the arguments of tool call ${index} as a JSON object. Replace text inside of JSON strings only`,
        )
  }
}

const isContent = (event: GenerateEvent): event is ContentEvent =>
  event.type !== 'start' && event.type !== 'prompt' && event.type !== 'progress' && event.type !== 'end'

function isContentLike(event: Readonly<Record<string, unknown>>): event is ContentEvent & typeof event {
  const { type, text, json, id, name } = event
  if (type === 'text' || type === 'reasoning') return typeof text === 'string'
  if (type === 'tool-arguments') return typeof json === 'string'
  return type === 'tool-call' && typeof id === 'string' && typeof name === 'string'
}

function contentOf(event: ContentEvent): string {
  if (event.type === 'tool-call') return `${event.id} ${event.name}`
  return event.type === 'tool-arguments' ? event.json : event.text
}

function expectType(event: unknown, type: 'start'): void
function expectType(event: unknown, type: 'end'): EndEvent
function expectType(event: unknown, type: string): unknown {
  if (isRecord(event) && event.type === type) return event
  throw unexpected(`the event \`${type}\` among the events that it returns for it`, event)
}

function unexpected(expected: string, got: unknown): TypeError {
  const what =
    isRecord(got) && 'type' in got ? `an event of the type ${JSON.stringify(got.type)}` : String(got)
  return new TypeError(`Expected the mapper to return ${expected}, got ${what}`)
}
