import type { Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { HitRates } from './hit-rates.ts'
import { PromptLookup } from './prompt-lookup.ts'

const tokens = (text: string): Token[] => Array.from(text, (letter) => letter.charCodeAt(0) as Token)

/** @param text the last letter is not evaluated yet */
function guessAfter(text: string, maxCount = 5, lookup = new PromptLookup(new HitRates())): string {
  const all = tokens(text)
  const guess = lookup.guess(all.slice(0, -1), all.at(-1) as Token, maxCount)
  expect(guess.hitRates).toHaveLength(guess.tokens.length)
  return String.fromCharCode(...guess.tokens)
}

test.each([
  ['a repeated passage goes on', 'the quick brown fox. the quick', ' brow'],
  ['of two passages, the longer match goes on', '1 the quick fox, 2 the quick dog: 1 the quick', ' fox,'],
  ['of two equal matches, the later one goes on', 'a quick fox, a quick dog, a quick', ' dog,'],
  ['three equal tokens are no match', 'abcdefg.efg', ''],
  ['four equal tokens are a match', 'abcdefg.defg', '.defg'],
  ['a loop continues with itself', 'and on and on', ' and '],
  ['one token after the other is the shortest loop', 'aaaaa', 'aaaaa'],
  ['a short text has no match', 'a', ''],
])('%s', (_, text, guess) => {
  expect(guessAfter(text)).toBe(guess)
})

test('a match goes on while its guesses are right, and is dropped after a wrong one', () => {
  const lookup = new PromptLookup(new HitRates())
  const text = 'wait, quick silver. A quick fox. A quick'

  expect(guessAfter(text, 4, lookup)).toBe(' fox')
  expect(guessAfter(`${text} f`, 4, lookup)).toBe('ox. ')
  expect(guessAfter(`${text} fr`, 4, lookup)).toBe('')
})

test('tokens of steps without a guess count, too', () => {
  const hitRates = new HitRates()
  const lookup = new PromptLookup(hitRates)
  const before = hitRates.rateAt(16)
  const sentence = 'the quick brown fox jumps over the lazy dog '
  guessAfter(`${sentence}the quick brown `, 1, lookup)

  guessAfter(`${sentence}the quick brown fox jumps ov`, 1, lookup)

  expect(hitRates.rateAt(16)).toBeGreaterThan(before)
})

test('a long match is trusted more than a short one, until it is often wrong', () => {
  const hitRates = new HitRates()
  expect(hitRates.rateAt(64)).toBeGreaterThan(hitRates.rateAt(16))
  expect(hitRates.rateAt(16)).toBeGreaterThan(hitRates.rateAt(4))

  for (let time = 0; time < 40; time++) hitRates.record(100, time % 2 === 0)
  expect(hitRates.rateAt(64)).toBeLessThan(0.85)
  for (let time = 0; time < 5_000; time++) hitRates.record(100, true)
  expect(hitRates.rateAt(64)).toBeGreaterThan(0.99)
})
