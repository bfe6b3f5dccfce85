import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ReasoningSplitter } from './reasoning.ts'

/** What is told apart, joined. */
function split(pieces: readonly string[], prompt = ''): { reasoning: string; text: string } {
  const splitter = new ReasoningSplitter(prompt)
  const said = [...pieces.flatMap((piece) => splitter.push(piece)), ...splitter.flush()]
  const join = (type: string): string => said.map((one) => (one.type === type ? one.text : '')).join('')
  return { reasoning: join('reasoning'), text: join('text') }
}

test.each([
  ['<think>2 and 3.</think>5', '2 and 3.', '5'],
  ['\n <think>\n2 and 3.\n</think>\n\n5\n', '2 and 3.', '5\n'],
  ['<think></think>\n\n5', '', '5'],
  ['<think>\n\n</think>\n\n5', '', '5'],
  ['<think>still at it ', 'still at it', ''],
  ['<think>a < b </thin', 'a < b </thin', ''],
  ['5 <think>no</think>', '', '5 <think>no</think>'],
  ['<thinking>no</thinking>', '', '<thinking>no</thinking>'],
  ['<th', '', '<th'],
  ['  5', '', '  5'],
  ['<think>a</think>b</think>c', 'a', 'b</think>c'],
  ['', '', ''],
])('%j is told apart, wherever it is cut', (answer, reasoning, text) => {
  expect(split([answer])).toEqual({ reasoning, text })
  fc.assert(
    fc.property(fc.array(fc.nat({ max: answer.length })), (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), answer.length]
      const pieces = at.slice(1).map((end, index) => answer.slice(at[index], end))
      expect(split(pieces)).toEqual({ reasoning, text })
    }),
  )
})

test('a prompt that opens the thoughts itself is understood', () => {
  expect(split(['2 and 3.', '</thi', 'nk>', '\n\n5'], 'user: 2 + 3?\n<think>\n')).toEqual({
    reasoning: '2 and 3.',
    text: '5',
  })
})

test('what cannot be the beginning of a tag is said at once', () => {
  const splitter = new ReasoningSplitter('')

  expect(splitter.push('Hello')).toEqual([{ type: 'text', text: 'Hello' }])
  expect(splitter.push(' <think>')).toEqual([{ type: 'text', text: ' <think>' }])
})
