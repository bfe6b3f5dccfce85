import { expect, test } from 'vitest'
import { detectServer } from './server-kind.ts'

test.each([
  [['vllm'], 'vllm'],
  [['llamacpp'], 'llama-server'],
  [['library', 'library', 'modelmount'], 'modelmount'],
  [['library'], 'other'],
  [[], 'other'],
  [[undefined, 7, '__proto__'], 'other'],
] as const)('models of %j are those of the server %s', (owners, server) => {
  expect(detectServer(owners)).toBe(server)
})
