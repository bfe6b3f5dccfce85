import { expect, test } from 'vitest'
import { renderFleet } from './fleet-page.ts'
import type { ServedReplica } from './read-activity.ts'

const replica: ServedReplica = {
  ...{
    engine: 'gpu',
    url: 'http://10.0.0.7:8000/',
    state: 'ready',
    runningCalls: 2,
    outstandingTokens: 812.4,
  },
  ...{ calls: 40, failedCalls: 1, inputTokens: 1_000, cachedTokens: 953, ejections: 0 },
}

test('the page has the state, load, cache hits and ejections of each replica', () => {
  const now = Date.parse('2026-01-01T00:00:10Z')
  const ejected: ServedReplica = {
    ...{ ...replica, url: 'http://10.0.0.8:8000/', state: 'ejected', runningCalls: 0, outstandingTokens: 0 },
    ...{ inputTokens: 0, cachedTokens: 0, ejections: 3 },
    lastFailure: { kind: 'unreachable', at: '2026-01-01T00:00:05Z' },
  }

  expect(renderFleet('http://127.0.0.1:11434', { replicas: [replica, ejected] }, now)).toBe(
    [
      'http://127.0.0.1:11434  1 of 2 replicas ready, 2 running calls',
      '',
      'ENGINE    REPLICA                  STATE      RUNNING    TOKENS LEFT    CALLS    FAILED    CACHED    EJECTIONS    LAST FAILURE',
      'gpu       http://10.0.0.7:8000/    ready      2          812            40       1         95 %      0            -',
      'gpu       http://10.0.0.8:8000/    ejected    0          0              40       1         -         3            unreachable, 5.0s ago',
      '',
    ].join('\n'),
  )
})

test('a server without replicas says how to get some', () => {
  expect(renderFleet('http://localhost:1', { replicas: [] })).toContain('--upstream gpu=URL,URL')
})
