import { expect, test } from 'vitest'
import { toPrefixKey } from './prefix-key.ts'

const system = (letter: string): string => letter.repeat(2_000)

test('in the order of their keys, prompts with a common beginning are neighbours', () => {
  const prompts = ['a', 'b', 'c'].flatMap((letter) =>
    ['x', 'y', 'z'].map((question) => `${system(letter)}${question.repeat(5_000)}`),
  )
  const shuffled = prompts.toSorted((a, b) => (a.slice(2_000) < b.slice(2_000) ? -1 : 1))

  const sorted = shuffled.toSorted((a, b) => (toPrefixKey(a) < toPrefixKey(b) ? -1 : 1))

  const letters = sorted.map((prompt) => prompt[0])
  expect(letters.filter((letter, index) => letter !== letters[index - 1])).toHaveLength(3)
})

test('prompts that differ after their common beginning have keys that begin equally', () => {
  const [one, other] = [`${system('a')}one`, `${system('a')}other`].map(toPrefixKey) as [string, string]

  expect(one).toBe(other)
  expect(toPrefixKey(`${system('a')}${'x'.repeat(3_000)}`).startsWith(one)).toBe(true)
  expect(toPrefixKey('short')).toBe('')
})
