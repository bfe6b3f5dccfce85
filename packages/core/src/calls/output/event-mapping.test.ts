import { describe, expect, test } from 'vitest'
import { randomOf } from '../../../../../test/support/random.ts'
import { type GenerateEvent, type SampledToken, uncached } from '../../engine/events.ts'
import { type EventMapper, EventMapping } from './event-mapping.ts'

const start: GenerateEvent = {
  type: 'start',
  model: 'tiny',
  inputTokens: 1,
  reusedTokens: 0,
  ...uncached,
  fingerprint: 'fp_1',
}
const end = {
  type: 'end',
  finishReason: 'stop',
  usage: { inputTokens: 1, reusedTokens: 0, ...uncached, outputTokens: 3 },
  timings: { loadMs: 0, promptMs: 0, generateMs: 0 },
} as const satisfies GenerateEvent
const text = (text: string, tokens = 1) => ({ type: 'text', text, tokens }) as const
const thought = (text: string, tokens = 1) => ({ type: 'reasoning', text, tokens }) as const
const call = (index: number) => ({ type: 'tool-call', index, id: `call_${index}`, name: 'mail' }) as const
const args = (index: number, json: string) => ({ type: 'tool-arguments', index, json, tokens: 1 }) as const
const token = (text: string): SampledToken => ({ id: 7, text, bytes: [104], logprob: -1, top: [] })

/** Returns the events that the reader gets. */
function run(map: EventMapper, events: readonly GenerateEvent[]): readonly GenerateEvent[] {
  const mapping = new EventMapping(map)
  return events.flatMap((event) => mapping.apply(event))
}

/** Withholds all text until the answer ends, and then sends it in capitals. */
function shoutAtEnd(): EventMapper {
  let held = ''
  return (event) => {
    if (event.type === 'end') return [{ type: 'text', text: held.toUpperCase(), tokens: 0 }, event]
    if (event.type !== 'text') return event
    held += event.text
    return undefined
  }
}

describe('tokens', () => {
  test('of events that the mapper returns unchanged are those of the engine', () => {
    const events = [start, thought('Hm.'), text('Hi', 2), call(0), args(0, '{}'), end]

    expect(run((event) => event, events)).toEqual(events)
  })

  test('of withheld events count with the next event that goes out', () => {
    const map: EventMapper = (event) =>
      event.type === 'text' && event.text === '.' ? { ...event, tokens: 99 } : isEdge(event) ? event : []

    expect(run(map, [start, text('a'), text('b', 2), text('.'), text('c'), end])).toEqual([
      start,
      text('.', 4),
      end,
    ])
  })

  test('of withheld events count with what is sent at the end', () => {
    expect(run(shoutAtEnd(), [start, text('a'), text('b'), end])).toEqual([start, text('AB', 2), end])
  })

  test('of reasoning count as reasoning when it is sent together with the text behind it', () => {
    let held = ''
    const map: EventMapper = (event) => {
      if (event.type === 'reasoning') {
        held += event.text
        return
      }
      if (event.type !== 'text') return event
      return [thought(held, 0), event]
    }

    expect(run(map, [start, thought('a'), thought('b'), text('c'), end])).toEqual([
      start,
      thought('ab', 2),
      text('c', 1),
      end,
    ])
  })

  test('of dropped reasoning count with the first text', () => {
    const map: EventMapper = (event) => (event.type === 'reasoning' ? undefined : event)

    expect(run(map, [start, thought('a', 5), text('c'), end])).toEqual([start, text('c', 6), end])
  })

  test('add up to those of the engine, whatever a mapper withholds, splits, joins or invents', () => {
    for (let seed = 0; seed < 500; seed++) {
      const random = randomOf(seed)
      const content = Array.from({ length: 20 }, (_, index) =>
        random() < 0.3
          ? thought(`${index}`, Math.floor(random() * 4))
          : text(`${index}`, Math.floor(random() * 4)),
      )
      let held: GenerateEvent[] = []
      const returned = run(
        (event) => {
          if (event.type === 'start') return event
          held.push(random() < 0.5 || event.type === 'end' ? event : text('x', Math.floor(random() * 9) - 4))
          if (event.type !== 'end' && random() < 0.5) return undefined
          const out = event.type === 'end' ? [text('last'), ...held] : held
          held = []
          return out
        },
        [start, ...content, end],
      )

      expect(sumTokens(returned), `seed ${seed}`).toBe(sumTokens(content))
    }
  })

  test('in the counts of the start and the end are those of the engine', () => {
    const map: EventMapper = (event) => {
      if (event.type === 'start') return { ...event, inputTokens: 0, model: 'other' }
      return event.type === 'end'
        ? { ...event, finishReason: 'length', usage: { ...event.usage, outputTokens: 0 } }
        : event
    }

    expect(run(map, [start, text('a'), end])).toEqual([start, text('a'), { ...end, finishReason: 'length' }])
  })
})

describe('logprobs', () => {
  const hello = { ...text('h'), logprobs: [token('h')] }

  test('stay with an event that the mapper returns as it is, also later', () => {
    let held: GenerateEvent[] = []
    const map: EventMapper = (event) => {
      if (event.type === 'start') return event
      held.push(event)
      if (event.type !== 'end') return
      const out = held
      held = []
      return out
    }

    expect(run(map, [start, hello, { ...hello }, end])).toEqual([
      start,
      { ...hello, tokens: 2 },
      { ...hello, tokens: 0 },
      end,
    ])
  })

  test.each<[how: string, change: (event: typeof hello) => GenerateEvent]>([
    ['a copy', (event) => ({ ...event, text: '*' })],
    ['the same object', (event) => Object.assign(event, { text: '*' })],
  ])('of changed text are removed, if the mapper returns %s', (_how, change) => {
    const map: EventMapper = (event) => (event.type === 'text' ? change(event as typeof hello) : event)

    expect(run(map, [start, { ...hello }, end])).toEqual([start, text('*'), end])
  })

  test('and token ids of the answer stay only if all of its content does', () => {
    const withIds = { ...end, tokens: [1, 2, 3] }
    const dropping: EventMapper = (event) => (event.type === 'text' ? undefined : event)

    expect(run((event) => event, [start, hello, withIds]).at(-1)).toEqual(withIds)
    expect(run(shoutAtEnd(), [start, hello, withIds]).at(-1)).toEqual(end)
    expect(run(dropping, [start, hello, withIds]).at(-1)).toEqual(end)
  })
})

describe('a mapper is rejected', () => {
  const prompt: GenerateEvent = { type: 'prompt', tokens: [] }

  test.each<[why: string, map: (event: GenerateEvent) => unknown, message: string]>([
    ['that drops the start', ({ type }) => (type === 'start' ? [] : undefined), '`start`'],
    ['that drops the end', (event) => (event.type === 'end' ? undefined : event), '`end`'],
    [
      'that adds text before the start',
      (event) => (event.type === 'start' ? [text('a'), event] : event),
      '`start`',
    ],
    [
      'that adds text behind the end',
      (event) => (event.type === 'end' ? [event, text('a')] : event),
      '`end`',
    ],
    ['that ends the answer early', (event) => (event.type === 'text' ? [event, end] : event), '`end` last'],
    [
      'that returns a prompt after text',
      (event) => (event.type === 'end' ? [prompt, event] : event),
      'no `prompt`',
    ],
    ['that is asynchronous', async (event) => event, '`start`'],
    [
      'that returns a text',
      (event) => (event.type === 'text' ? 'a' : event),
      'an event, a list of events or nothing',
    ],
    [
      'that returns text without text',
      (event) => (event.type === 'text' ? { type: 'text' } : event),
      '"text"',
    ],
    ['that invents arguments', (event) => (event.type === 'text' ? args(0, '{}') : event), 'directly after'],
    ['that renumbers calls', (event) => (event.type === 'tool-call' ? call(1) : event), 'the index 0'],
    [
      'that breaks the arguments of a tool call',
      (event) => (event.type === 'tool-arguments' ? args(0, '{') : event),
      'as a JSON object',
    ],
  ])('%s', (_why, map, message) => {
    const events = [start, text('a'), call(0), args(0, '{"to":"Ada"}'), end]

    expect(() => run(map as EventMapper, events)).toThrow(message)
  })

  test('only for broken arguments that do not count as incomplete', () => {
    const cut = { ...end, incompleteCalls: [0] }
    const map: EventMapper = (event) => (event.type === 'tool-arguments' ? args(0, '{"to":"*"') : event)

    expect(run(map, [start, call(0), args(0, '{"to":"Ad'), cut])).toEqual([
      start,
      call(0),
      args(0, '{"to":"*"'),
      cut,
    ])
  })

  test('that is no function', () => {
    expect(() => EventMapping.of(Promise.resolve() as never)).toThrow('to return a function or undefined')
  })
})

const isEdge = ({ type }: GenerateEvent): boolean => type === 'start' || type === 'end'

const sumTokens = (events: readonly GenerateEvent[]): number =>
  events.reduce(
    (sum, event) => sum + ('tokens' in event && typeof event.tokens === 'number' ? event.tokens : 0),
    0,
  )
