import { expect, test } from 'vitest'
import type { HashedPrompt } from './prefix-blocks.ts'
import { PrefixMemory } from './prefix-memory.ts'

/** A prompt of blocks with these names, 100 tokens each. The last block is the first that is its own. */
const prompt = (names: string, key = names): HashedPrompt => ({
  blocks: [...names].map((_, index) => ({ hash: names.slice(0, index + 1), tokens: (index + 1) * 100 })),
  ...{ key, tokens: names.length * 100 },
})

test('each cache has the longest prefix that it got', () => {
  const memory = new PrefixMemory()
  memory.add(prompt('abc'), 1)
  memory.add(prompt('ab'), 2)

  expect([...memory.match(prompt('abcd')).cachedTokens]).toEqual([
    [1, 300],
    [2, 200],
  ])
  expect(memory.match(prompt('x')).cachedTokens.size).toBe(0)
})

test('a conversation keeps its replica, however many turns it has', () => {
  const memory = new PrefixMemory()
  const names = 'abcdefghij'
  memory.add(prompt('a'), 1)

  for (let length = 2; length <= names.length; length++) {
    expect(memory.match(prompt(names.slice(0, length), 'a')).prefersCached).toBe(true)
    memory.add(prompt(names.slice(0, length)), 1)
  }
})

test('instructions of many conversations go to a further replica when these have as many tokens of their own', () => {
  const memory = new PrefixMemory()
  const prefers: boolean[] = []
  memory.add(prompt('ssss'), 1)

  for (let index = 0; index < 6; index++) {
    const conversation = prompt(`ssss${index}`)
    prefers.push(memory.match(conversation).prefersCached)
    memory.add(conversation, 1)
  }

  // 400 tokens of instructions: four conversations of 100 tokens each.
  expect(prefers).toEqual([true, true, true, true, false, false])
  memory.add(prompt('ssss9'), 2)
  expect(memory.match(prompt('ssssz')).prefersCached).toBe(true)
})

test('short instructions do not bring conversations to a replica', () => {
  const memory = new PrefixMemory()
  memory.add(prompt('s1'), 1)

  expect(memory.match(prompt('s2')).prefersCached).toBe(false)
  expect(memory.match(prompt('s12', 's1')).prefersCached).toBe(true)
})
