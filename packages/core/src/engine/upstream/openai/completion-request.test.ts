import { describe, expect, test } from 'vitest'
import type { GenerateRequest, TextInput } from '../../request.ts'
import { toChatRequest } from './chat-request.ts'
import { toCompletionRequest } from './completion-request.ts'
import { serverFeatures } from './server-kind.ts'

const input: TextInput = { kind: 'text', prompt: ['Once'], template: false }
const unlimited: GenerateRequest = { model: 'small', input, maxTokens: 2_147_483_647, defaultMaxTokens: 16 }

describe('the limit of output tokens', () => {
  test.each([
    ['llama-server', -1],
    ['modelmount', -1],
    // vLLM takes 16 tokens if the field is absent, and all that fit for null.
    ['vllm', null],
  ] as const)('a completion without a limit says so to %s', (server, value) => {
    expect(toCompletionRequest(unlimited, input, serverFeatures[server], undefined)).toMatchObject({
      max_tokens: value,
    })
  })

  test('a completion has the default of the API', () => {
    const { maxTokens: _, ...request } = unlimited

    expect(toCompletionRequest(request, input, serverFeatures.vllm, undefined)).toMatchObject({
      max_tokens: 16,
    })
  })

  test('a chat of OpenAI has another field than its completions', () => {
    const request = { ...unlimited, maxTokens: 5 }
    const chat = toChatRequest(request, { kind: 'chat', messages: [] }, serverFeatures.openai, undefined)

    expect(chat).toMatchObject({ max_completion_tokens: 5 })
    expect(chat).not.toHaveProperty('max_tokens')
    expect(toCompletionRequest(request, input, serverFeatures.openai, undefined)).toMatchObject({
      max_tokens: 5,
    })
  })

  test('a chat without a limit has no field', () => {
    expect(
      toChatRequest(unlimited, { kind: 'chat', messages: [] }, serverFeatures.vllm, undefined),
    ).not.toHaveProperty('max_tokens')
  })
})

test('a completion of vLLM has a salt of the tenant, like a chat', () => {
  const saltOf = (tenant: string) => {
    const body = toCompletionRequest(unlimited, input, serverFeatures.vllm, tenant)
    return (body as { readonly cache_salt?: string }).cache_salt
  }
  const chat = toChatRequest(unlimited, { kind: 'chat', messages: [] }, serverFeatures.vllm, 'ann')

  expect(chat).toHaveProperty('cache_salt', saltOf('ann'))
  expect(saltOf('ann')).not.toBe(saltOf('bob'))
  expect(saltOf('ann')).not.toContain('ann')
})
