import { expect, test } from 'vitest'
import { checkEngine } from './engine.ts'

const running = {
  llamaCpp: 'b1',
  gpu: false,
  cards: [],
  freeVramBytes: 0,
  totalVramBytes: 0,
  cpuFeatures: [],
} as const

test('an engine in the tested version is ok, and another version is a warning with the command that installs the tested one', () => {
  expect(checkEngine({ engine: { ...running, version: '3.22.1' } }, '3.22.1')).toEqual({
    check: 'engine',
    status: 'ok',
    message: 'node-llama-cpp 3.22.1, llama.cpp b1, for CPU, starts',
  })
  expect(checkEngine({ engine: { ...running, version: '3.23.0' } }, '3.22.1')).toMatchObject({
    status: 'warning',
    fix: 'npm install node-llama-cpp@3.22.1',
  })
})

test.each([
  [
    'The engine is not installed. Install it with: npm install node-llama-cpp@3.22.1',
    ['The engine is not installed.', 'npm install node-llama-cpp@3.22.1'],
  ],
  [
    'This clone leaves out the engine for darwin-arm64. Add it with: npm run add-engine',
    ['This clone leaves out the engine for darwin-arm64.', 'npm run add-engine'],
  ],
  [
    'There is no prebuilt engine for musl, as in Alpine Linux. Use an image with glibc, such as node:22-slim.',
    [
      'There is no prebuilt engine for musl, as in Alpine Linux. Use an image with glibc, such as node:22-slim.',
      undefined,
    ],
  ],
  [
    'The engine crashed with SIGILL.',
    ['The engine crashed with SIGILL.', 'npm install node-llama-cpp@3.22.1'],
  ],
])(
  'an engine that does not start is a problem, with the command in its text: %s',
  (problem, [message, fix]) => {
    const finding = checkEngine({ engine: { version: '', problem } }, '3.22.1')

    expect([finding.status, finding.message, finding.fix]).toEqual(['problem', message, fix])
  },
)
