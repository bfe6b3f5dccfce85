import type { Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { CountedPrompts } from './counted-prompts.ts'

const tokensOf = (length: number, token = 1): Token[] => Array<Token>(length).fill(token as Token)

test('the tokens of each call are returned once', () => {
  const prompts = new CountedPrompts()
  prompts.add(1, tokensOf(2))
  prompts.add(2, tokensOf(0))

  expect(prompts.take(1)).toEqual([1, 1])
  expect(prompts.take(1)).toBeUndefined()
  expect(prompts.take(2)).toEqual([])
  expect(prompts.take(3)).toBeUndefined()
})

test('above a million tokens, the oldest prompts are dropped', () => {
  const prompts = new CountedPrompts()
  for (const id of [1, 2, 3]) prompts.add(id, tokensOf(400_000, id))
  prompts.add(4, tokensOf(1_000_001))

  expect(prompts.take(1)).toBeUndefined()
  expect(prompts.take(2)?.[0]).toBe(2)
  expect(prompts.take(3)?.[0]).toBe(3)
  expect(prompts.take(4)).toBeUndefined()
})

test('tokens are dropped after a minute', () => {
  let now = 1
  const prompts = new CountedPrompts(() => now)
  prompts.add(1, tokensOf(2))
  prompts.add(2, tokensOf(2))

  now += 59_000
  expect(prompts.take(1)).toHaveLength(2)
  now += 2_000
  expect(prompts.take(2)).toBeUndefined()
})
