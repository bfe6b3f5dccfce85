import { type GenerateEvent, uncached } from '@modelmount/core/engine'
import { expect, test } from 'vitest'
import { StreamPartBuilder } from './stream-parts.ts'

type EndEvent = Extract<GenerateEvent, { type: 'end' }>
const end = (more: Partial<EndEvent> = {}): EndEvent => ({
  type: 'end',
  finishReason: 'stop',
  usage: { inputTokens: 10, reusedTokens: 6, ...uncached, outputTokens: 5 },
  timings: { loadMs: 0, promptMs: 1, generateMs: 2 },
  ...more,
})
const text = (text: string): GenerateEvent => ({ type: 'text', text, tokens: 1 })
const call = (index: number, ...pieces: readonly string[]): readonly GenerateEvent[] => [
  { type: 'tool-call', index, id: `call_${index}`, name: 'find' },
  ...pieces.map((json) => ({ type: 'tool-arguments' as const, index, json, tokens: 1 })),
]

function partsOf(events: readonly GenerateEvent[]) {
  const builder = new StreamPartBuilder()
  return events.flatMap((event) => builder.push(event))
}

test('each block gets an id, and empty texts open none', () => {
  const parts = partsOf([text(''), text('a'), ...call(0, '{}'), text('b'), end()])

  expect(parts.slice(0, -1)).toEqual([
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'a' },
    { type: 'text-end', id: '0' },
    { type: 'tool-input-start', id: 'call_0', toolName: 'find' },
    { type: 'tool-input-delta', id: 'call_0', delta: '{}' },
    { type: 'tool-input-end', id: 'call_0' },
    { type: 'tool-call', toolCallId: 'call_0', toolName: 'find', input: '{}' },
    { type: 'text-start', id: '1' },
    { type: 'text-delta', id: '1', delta: 'b' },
    { type: 'text-end', id: '1' },
  ])
})

test.each<[what: string, events: readonly GenerateEvent[]]>([
  [
    'a call that the model breaks off',
    [...call(0, '{"a":'), ...call(1, '{}'), end({ incompleteCalls: [0] })],
  ],
  ['a call whose end is missing', [...call(0, '{}'), ...call(1, '{}'), end({ incompleteCalls: [1] })]],
])('%s gets no tool-call part', (_what, events) => {
  const calls = partsOf(events).filter(({ type }) => type === 'tool-call')

  expect(calls).toHaveLength(1)
})

test.each([
  ['stop', 'stop'],
  ['length', 'length'],
  ['context', 'length'],
  ['tool-calls', 'tool-calls'],
] as const)('the finish reason %s is %s in the SDK', (raw, unified) => {
  expect(partsOf([end({ finishReason: raw })])).toMatchObject([{ finishReason: { unified, raw } }])
})

test('the usage counts each token of the prompt and of the output once', () => {
  const usage = {
    ...{ inputTokens: 100, reusedTokens: 40, cacheReadTokens: 30, outputTokens: 7 },
    cacheWriteTokens: { '5m': 10, '1h': 20 },
  }

  const [finish] = partsOf([{ type: 'reasoning', text: '', tokens: 3 }, end({ usage })])

  expect(finish).toMatchObject({
    usage: {
      inputTokens: { total: 100, noCache: 40, cacheRead: 30, cacheWrite: 30 },
      outputTokens: { total: 7, text: 4, reasoning: 3 },
      raw: usage,
    },
  })
})

test('the metadata has the stop sequence and the fingerprint of the model', () => {
  const start: GenerateEvent = {
    type: 'start',
    model: 'tiny',
    fingerprint: 'fp_1',
    inputTokens: 1,
    reusedTokens: 0,
    ...uncached,
  }

  const [finish] = partsOf([start, end({ stopSequence: 'END' })])

  expect(finish).toMatchObject({
    providerMetadata: {
      modelmount: {
        fingerprint: 'fp_1',
        stopSequence: 'END',
        timings: { loadMs: 0, promptMs: 1, generateMs: 2 },
      },
    },
  })
})
