import { expect, test } from 'vitest'
import { LlmError } from '../../../errors.ts'
import type { ChatInput, GenerateRequest, Message, Sampling } from '../../request.ts'
import type { OpenAiServer } from '../options.ts'
import { toChatRequest } from './chat-request.ts'
import { serverFeatures } from './server-kind.ts'

const user: Message = { role: 'user', content: [{ type: 'text', text: 'Hello' }] }

function bodyOf(
  server: OpenAiServer,
  request: Partial<GenerateRequest>,
  messages: readonly Message[] = [user],
  tenant?: string,
): Record<string, unknown> {
  const input: ChatInput = { kind: 'chat', messages }
  const whole = { model: 'small', input, ...request }
  return toChatRequest(whole, input, serverFeatures[server], tenant) as Record<string, unknown>
}
const sampled = (server: OpenAiServer, sampling: Sampling) => bodyOf(server, { sampling })

test('the error of a tool becomes the first word of its result, which has no field for it', () => {
  const result = (isError?: true) => ({
    ...{ type: 'tool-result', id: 'call_1', content: [{ type: 'text', text: 'No such city.' }] },
    ...(isError && { isError }),
  })
  const contentOf = (part: object) =>
    bodyOf('vllm', {}, [user, { role: 'tool', content: [part] } as unknown as Message]).messages

  expect(contentOf(result(true))).toMatchObject([{}, { content: 'Error: No such city.' }])
  expect(contentOf(result())).toMatchObject([{}, { content: 'No such city.' }])
})

test.each(['modelmount', 'llama-server'] as const)('%s takes texts as keys of `logit_bias`', (server) => {
  expect(
    sampled(server, {
      logitBias: [
        ['abc', 1],
        [5, -100],
      ],
    }).logit_bias,
  ).toEqual({ abc: 1, 5: -100 })
  expect(JSON.stringify(sampled(server, { logitBias: [['__proto__', 1]] }))).toContain('{"__proto__":1}')
})

test.each<[OpenAiServer, string]>([
  ['vllm', 'abc'],
  ['openai', 'abc'],
  ['modelmount', '50256'],
  ['llama-server', ' 7'],
])('%s takes no bias for the text %j', (server, text) => {
  const expected = { code: 'invalid_request', details: { param: 'sampling.logitBias', issue: 'unsupported' } }
  expect(() => sampled(server, { logitBias: [[text, 1]] })).toThrow(LlmError)
  expect(() => sampled(server, { logitBias: [[text, 1]] })).toThrow(expect.objectContaining(expected))
})

test('a random seed is drawn for servers whose models may have another default', () => {
  const seeds = Array.from({ length: 20 }, () => sampled('modelmount', { seed: 'random' }).seed)

  expect(new Set(seeds).size).toBeGreaterThan(1)
  for (const seed of seeds) expect(seed).toSatisfy((one: number) => Number.isInteger(one) && one >= 0)
  expect(sampled('vllm', { seed: 'random' })).not.toHaveProperty('seed')
  expect(sampled('modelmount', {})).not.toHaveProperty('seed')
  expect(sampled('vllm', { seed: 7 }).seed).toBe(7)
})

test('only servers that report the progress of the prompt are asked for it', () => {
  expect(bodyOf('llama-server', { returnProgress: true })).toMatchObject({ return_progress: true })
  expect(bodyOf('llama-server', {})).not.toHaveProperty('return_progress')
  expect(bodyOf('vllm', { returnProgress: true })).not.toHaveProperty('return_progress')
})

test('only vLLM gets a salt, which is a hash of the tenant', () => {
  const salt = bodyOf('vllm', {}, [user], 'tenant-of-ann').cache_salt

  expect(salt).toMatch(/^[\w-]{43}$/)
  expect(bodyOf('vllm', {}, [user], 'tenant-of-ann').cache_salt).toBe(salt)
  expect(bodyOf('vllm', {}, [user], 'tenant-of-bob').cache_salt).not.toBe(salt)
  expect(bodyOf('vllm', {})).not.toHaveProperty('cache_salt')
  for (const server of ['sglang', 'llama-server', 'modelmount', 'openai', 'other'] as const)
    expect(JSON.stringify(bodyOf(server, {}, [user], 'tenant-of-ann'))).not.toMatch(/cache_salt|tenant/)
})
