import { expect, test } from 'vitest'
import type { GenerateRequest } from '../request.ts'
import { CountedInputs } from './counted-inputs.ts'
import type { ProcessClient } from './supervisor/process-client.ts'

const requestOf = (): GenerateRequest => ({ model: 'tiny', input: { kind: 'text', prompt: ['Hi'] } })
const processOf = (): ProcessClient => ({}) as ProcessClient

test('the answer to a counted prompt uses its count, and only once', () => {
  const [request, process, counted] = [requestOf(), processOf(), new CountedInputs()]
  counted.add(request, process, 7)

  const limited = { ...request, maxTokens: 9 }
  expect(counted.take(limited, process)).toBe(7)
  expect(counted.take(request, process)).toBeUndefined()
})

test('the last of several counts is used', () => {
  const [request, process, counted] = [requestOf(), processOf(), new CountedInputs()]
  counted.add(request, process, 7)
  counted.add(request, process, 8)

  expect(counted.take(request, process)).toBe(8)
})

test.each<[of: string, change: (request: GenerateRequest) => GenerateRequest]>([
  ['an equal prompt of another call', () => requestOf()],
  ['other reasoning', (request) => ({ ...request, reasoning: false })],
])('a count is not used for %s', (_of, change) => {
  const [request, process, counted] = [requestOf(), processOf(), new CountedInputs()]
  counted.add(request, process, 7)

  expect(counted.take(change(request), process)).toBeUndefined()
})

test('a count is not used in another process', () => {
  const [request, process, counted] = [requestOf(), processOf(), new CountedInputs()]
  counted.add(request, process, 7)

  expect(counted.take(request, processOf())).toBeUndefined()
})
