import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StopMatcher, type StopResult } from './stop.ts'

test('without stop sequences every piece is emitted immediately', () => {
  const matcher = new StopMatcher()

  const cuts = ['Hello', ' ', 'there.'].map((piece) => matcher.push(piece))

  expect(cuts).toEqual([{ text: 'Hello' }, { text: ' ' }, { text: 'there.' }])
  expect(matcher.flush()).toBe('')
})

test('a stop sequence and the text after it are dropped', () => {
  const matcher = new StopMatcher(['END'])
  matcher.push('one EN')

  const cut = matcher.push('D two')

  expect(cut).toEqual({ text: '', stop: 'END' })
  expect(matcher.flush()).toBe('')
})

test('a prefix of a stop sequence is held back until it is complete', () => {
  const matcher = new StopMatcher(['\n\nUser:'])

  const cuts = ['Hi.\n', '\nUs', 'er:'].map((piece) => matcher.push(piece))

  expect(cuts).toEqual([{ text: 'Hi.' }, { text: '' }, { text: '', stop: '\n\nUser:' }])
})

test('held-back text is emitted if it does not complete a stop sequence', () => {
  const matcher = new StopMatcher(['<end>'])

  const cuts = ['a <', 'en', 'try> b'].map((piece) => matcher.push(piece))

  expect(cuts).toEqual([{ text: 'a ' }, { text: '' }, { text: '<entry> b' }])
})

test('only a possible prefix of a stop sequence is held back', () => {
  const matcher = new StopMatcher(['aab'])

  const cuts = ['xaa', 'a', 'a'].map((piece) => matcher.push(piece))

  expect(cuts).toEqual([{ text: 'x' }, { text: 'a' }, { text: 'a' }])
  expect(matcher.push('b')).toEqual({ text: '', stop: 'aab' })
})

test('flush returns held-back text once', () => {
  const matcher = new StopMatcher(['STOP'])
  matcher.push('please STO')

  const held = matcher.flush()

  expect(held).toBe('STO')
  expect(matcher.flush()).toBe('')
})

test('the stop sequence that is complete first ends the answer', () => {
  const whole = new StopMatcher(['abcd', 'bc']).push('xabcd')

  const matcher = new StopMatcher(['abcd', 'bc'])
  const pieces = [...'xabc'].map((piece) => matcher.push(piece))

  expect(whole).toEqual({ text: 'xa', stop: 'bc' })
  expect(pieces.at(-1)).toEqual({ text: 'a', stop: 'bc' })
})

test('if two stop sequences end together, the longer sequence is reported', () => {
  const cut = new StopMatcher(['\n', '###\n']).push('done###\nmore')

  expect(cut).toEqual({ text: 'done', stop: '###\n' })
})

/** Pushes pieces until a stop sequence is found. */
function run(pieces: readonly string[], stops: readonly string[]): StopResult {
  const matcher = new StopMatcher(stops)
  let shown = ''
  for (const piece of pieces) {
    const { text, stop } = matcher.push(piece)
    shown += text
    if (stop !== undefined) return { text: shown, stop }
  }
  return { text: shown + matcher.flush() }
}

const texts: [text: string, stops: string[], expected: StopResult][] = [
  ['hello world', ['zzz'], { text: 'hello world' }],
  ['hello wor', ['world'], { text: 'hello wor' }],
  ['one\n\ntwo', ['\n\n'], { text: 'one', stop: '\n\n' }],
  ['aaaab', ['aab'], { text: 'aa', stop: 'aab' }],
  ['ababac!', ['abac'], { text: 'ab', stop: 'abac' }],
  ['xabcd', ['abcd', 'bc'], { text: 'xa', stop: 'bc' }],
  ['xabcd', ['bc', 'abcd'], { text: 'xa', stop: 'bc' }],
  ['say </s>', ['</s>', 's', '>'], { text: '', stop: 's' }],
  ['ok###\nno', ['\n', '###\n'], { text: 'ok', stop: '###\n' }],
  ['abcabd', ['abd', 'cab'], { text: 'ab', stop: 'cab' }],
  ['END first', ['END'], { text: '', stop: 'END' }],
  ['grüß 😀 Gott', ['😀'], { text: 'grüß ', stop: '😀' }],
]

test.each(texts)('%j with the stops %j has the same result however it is split', (text, stops, expected) => {
  for (let cuts = 0; cuts < 2 ** (text.length - 1); cuts++) {
    const pieces = cutAt(text, cuts)
    const result = run(pieces, stops)
    // Compares without `expect` first, because `expect` is slow for a thousand matchers.
    if (result.text !== expected.text || result.stop !== expected.stop)
      expect({ pieces, ...result }).toEqual({ pieces, ...expected })
  }

  expect(run([text], stops)).toEqual(expected)
})

/** Splits the text after every character whose bit in `cuts` is set. */
function cutAt(text: string, cuts: number): string[] {
  const pieces: string[] = []
  let start = 0
  for (let at = 1; at < text.length; at++) {
    if ((cuts >> (at - 1)) & 1) {
      pieces.push(text.slice(start, at))
      start = at
    }
  }
  return [...pieces, text.slice(start)]
}

/** Reference implementation: searches the whole text each time. */
function naive(stops: readonly string[], text: string): StopResult {
  for (let end = 1; end <= text.length; end++) {
    const [stop] = stops.filter((one) => text.slice(0, end).endsWith(one)).sort((a, b) => b.length - a.length)
    if (stop !== undefined) return { text: text.slice(0, end - stop.length), stop }
  }
  return { text }
}

test('text and stop are the same as in a search of the whole text, for any pieces', () => {
  const letters = fc.stringMatching(/^[ab]{1,6}$/)

  fc.assert(
    fc.property(fc.array(letters, { maxLength: 4 }), fc.array(letters, { maxLength: 8 }), (stops, pieces) => {
      const matcher = new StopMatcher(stops)
      let text = ''
      let stop: string | undefined
      for (const piece of pieces) {
        const cut = matcher.push(piece)
        text += cut.text
        stop = cut.stop
        if (stop !== undefined) break
      }
      if (stop === undefined) text += matcher.flush()

      expect({ text, ...(stop !== undefined && { stop }) }).toEqual(naive(stops, pieces.join('')))
    }),
  )
})

test('sequences that almost match everywhere take linear time', () => {
  const nearly = Array.from({ length: 63 }, (_, n) => `${'a'.repeat(500)}${n}${'a'.repeat(500)}`)
  const matcher = new StopMatcher([`${'a'.repeat(1_023)}x`, ...nearly])
  const startedAt = performance.now()

  for (let token = 0; token < 5_000; token++) matcher.push('a')

  // Takes about 20 ms. Quadratic rescans would take five minutes.
  expect(performance.now() - startedAt).toBeLessThan(2_000)
})
