import { expect, test } from 'vitest'
import { uncached } from '../../events.ts'
import { FromProcess, ToProcess } from './messages.ts'

test.each([
  [{ type: 'generate', id: 1, request: { anything: true }, tenant: 'ann', weight: 1, background: false }],
  [{ type: 'count', id: 1, request: null, tenant: '', weight: 1, background: false }],
  [{ type: 'generate', id: 2, request: {}, tenant: '', weight: 1, background: false, countedBy: 1 }],
  [{ type: 'render', id: 1, request: {}, tenant: '', weight: 1, background: false }],
  [{ type: 'embed', id: 1, request: {}, tenant: '', weight: 1, background: true }],
  [{ type: 'cancel', id: 1 }],
  [{ type: 'ping' }],
])('the model process accepts %j', (message) => {
  expect(ToProcess.parse(message)).toEqual(message)
})

test.each([[{ type: 'cancel' }], [{ type: 'cancel', id: '1' }], [{ type: 'exit' }], ['ping'], [null]])(
  'the model process rejects %j',
  (message) => {
    expect(ToProcess.safeParse(message).success).toBe(false)
  },
)

test.each([
  [
    {
      type: 'loaded',
      contextSize: 4096,
      sizeBytes: 1,
      gpuBytes: 0,
      gpuLayers: 0,
      notes: [],
      stepMs: 90,
      task: 'generate',
    },
  ],
  [{ type: 'failed', error: { code: 'upstream', message: 'No.', details: {} } }],
  [
    {
      type: 'events',
      events: [
        {
          id: 1,
          event: {
            type: 'start',
            model: 'tiny',
            inputTokens: 3,
            reusedTokens: 0,
            ...uncached,
            fingerprint: 'fp_1',
          },
        },
      ],
    },
  ],
  [{ type: 'events', events: [{ id: 1, event: { type: 'text', text: '', tokens: 0 } }] }],
  [{ type: 'events', events: [{ id: 1, event: { type: 'reasoning', text: 'hm', tokens: 1 } }] }],
  [{ type: 'result', id: 1, value: 12 }],
  [{ type: 'result', id: 1, value: '<user>Hi' }],
  [{ type: 'result', id: 1, value: [0, 5, 2_147_483_647] }],
  [{ type: 'result', id: 1, value: { index: 3, vector: 'AACAPw==', inputTokens: 4 } }],
  [
    {
      type: 'events',
      events: [
        {
          id: 1,
          event: {
            type: 'end',
            finishReason: 'stop',
            stopSequence: '\n',
            usage: { inputTokens: 3, reusedTokens: 0, ...uncached, outputTokens: 1 },
            timings: { loadMs: 0, promptMs: 0.5, generateMs: 1.5 },
            tokens: [1, 2],
          },
        },
      ],
    },
  ],
  [{ type: 'done', id: 1 }],
  [{ type: 'done', id: 1, error: { code: 'internal', message: 'Oh.', details: {} } }],
  [{ type: 'pong', steps: 12 }],
  [{ type: 'warning', text: 'The disk is full.' }],
])('the app accepts %j', (message) => {
  expect(FromProcess.parse(message)).toEqual(message)
})

test.each([
  [{ type: 'loaded' }],
  [
    {
      type: 'loaded',
      contextSize: 4096,
      sizeBytes: Number.NaN,
      gpuBytes: 0,
      gpuLayers: 0,
      notes: [],
      stepMs: 90,
      task: 'generate',
    },
  ],
  [{ type: 'result', id: 1, value: null }],
  [{ type: 'events', events: [{ id: 1, event: { type: 'thought', text: 'hm' } }] }],
  [{ type: 'events', events: [{ event: { type: 'text', text: 'a', tokens: 1 } }] }],
  [{ type: 'done', id: 1, error: 'no' }],
  [{ type: 'pong', steps: 0.5 }],
  [{ type: 'warning' }],
])('the app rejects %j', (message) => {
  expect(FromProcess.safeParse(message).success).toBe(false)
})
