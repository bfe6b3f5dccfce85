import { expect, test } from 'vitest'
import { renderPage } from './page.ts'
import type { ServedActivity } from './read-activity.ts'
import { toFrame } from './redraw.ts'

const call: ServedActivity['calls'][number] = {
  ...{ id: 'abcdefghij', kind: 'generate', dialect: 'openai', route: '/v1/chat/completions', requestId: 'r' },
  ...{ model: 'tiny:latest', isKnownModel: true, alias: undefined, caller: 'ann', key: undefined },
  ...{ tenant: 'ann', isBackground: false, isBatchItem: false, ageMs: 2_500 },
  phase: 'decoding',
  ...{ inputTokens: 12, reusedTokens: 0, outputTokens: 40, tokensPerSecond: 20 },
}
const activity: Omit<ServedActivity, 'replicas'> = {
  calls: [call],
  callCount: 1,
  queues: [{ model: 'tiny:latest', waiting: 3 }],
  models: [
    {
      ...{ name: 'tiny:latest', state: 'ready', contextSize: 4_096, sizeBytes: 20_000_000, gpuBytes: 0 },
      activity: {
        ...{ activeSequences: 1, waitingSequences: 2, memoryBytes: 142_000_000 },
        ...{ cachedStates: 3, cachedStateBytes: 12_000_000, reportedAt: new Date(0) },
      },
    },
  ],
}

test('the page has the models with their queues, and the calls with their phase and speed', () => {
  expect(renderPage('http://127.0.0.1:11434', activity)).toBe(
    [
      'http://127.0.0.1:11434  1 call, 3 in queues, 20.0 tokens/s',
      '',
      'MODEL          RUNS ON    ACTIVE    WAITING    IN QUEUE    MEMORY    SAVED STATES',
      'tiny:latest    CPU        1         2          3           142 MB    3 (12 MB)',
      '',
      'CALL        MODEL          PHASE       AGE     TOKENS/S    OUTPUT    PROMPT    CALLER',
      'abcdefgh    tiny:latest    decoding    2.5s    20.0        40        12        ann',
      '',
    ].join('\n'),
  )
})

test('an idle server says so', () => {
  const page = renderPage('http://localhost:1', { calls: [], callCount: 0, queues: [], models: [] })

  expect(page).toContain('No model is loaded.')
  expect(page).toContain('No call runs.')
})

test('control characters in the names of clients do not reach the terminal', () => {
  const clearing = '\u001b[2J'
  const page = renderPage('http://localhost:1', {
    ...activity,
    calls: [{ ...call, model: `evil${clearing}`, caller: `bob${clearing}\n` }],
  })

  expect(page).not.toContain('\u001b')
  expect(page).toContain('evil[2J')
})

test('a frame is cut to the size of the terminal', () => {
  const frame = toFrame(`${'x'.repeat(100)}\nsecond\nthird\nfourth`, 10, 3)

  expect(frame).toBe(`\u001b[H${'x'.repeat(10)}\u001b[K\nsecond\u001b[K\n\u001b[J`)
})
