import { expect, test } from 'vitest'
import type { GenerateEvent } from '../../events.ts'
import { createConsumptionReporter, ReaderLag } from './reader-lag.ts'

const textOf = (tokens: number): GenerateEvent => ({ type: 'text', text: 'a', tokens })
const running = { isSuspended: false }
const suspended = { isSuspended: true }

/** An answer that is paused after 128 tokens, and its reader. */
function openAnswer() {
  const lag = new ReaderLag(128)
  const take = createConsumptionReporter(128, (tokens) => lag.onConsumed(tokens))
  for (let sent = 0; sent < 128; sent++) lag.onSent(textOf(1))
  return { lag, take }
}

test('an answer pauses at the read-ahead, and a running one resumes when its reader takes tokens', () => {
  const { lag, take } = openAnswer()
  expect(lag.isBackpressured(running)).toBe(true)

  take(32)

  expect(lag.isBackpressured(running)).toBe(false)
})

test('a suspended answer resumes only when its reader has taken three quarters of the read-ahead', () => {
  const { lag, take } = openAnswer()

  let taken = 0
  while (lag.isBackpressured(suspended) && taken < 128) {
    take(1)
    taken++
  }

  expect(taken).toBeGreaterThan(96)
})

test.each([1, 3, 7, 128])(
  'a suspended answer resumes when its reader has taken all, %i tokens at a time',
  (size) => {
    for (const ahead of [128, 1_000]) {
      const lag = new ReaderLag(ahead)
      const take = createConsumptionReporter(ahead, (tokens) => lag.onConsumed(tokens))
      let sent = 0
      for (; !lag.isBackpressured(running); sent += size) lag.onSent(textOf(size))
      for (let taken = 0; taken < sent; taken += size) take(size)

      expect(lag.isBackpressured(suspended)).toBe(false)
    }
  },
)

test('without a read-ahead, an answer never pauses', () => {
  const lag = new ReaderLag()
  lag.onSent(textOf(100_000))

  expect([running, suspended].map((now) => lag.isBackpressured(now))).toEqual([false, false])
})
