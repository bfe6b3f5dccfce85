import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { OutputPart } from './output-part.ts'
import { splitReasoning } from './reasoning.ts'

/** Joins the parts of each type. */
function split(pieces: readonly string[], prompt = '', template = ''): { reasoning: string; text: string } {
  const splitter = splitReasoning(prompt, template)
  const result = [...pieces.flatMap((piece) => splitter.push(piece)), ...splitter.flush()]
  return { reasoning: joinType(result, 'reasoning'), text: joinType(result, 'text') }
}

const joinType = (parts: readonly OutputPart[], type: string): string =>
  parts.map((one) => (one.type === type && 'text' in one ? one.text : '')).join('')

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
])('separates reasoning in %j, however the text is split', (answer, reasoning, text) => {
  expect(split([answer])).toEqual({ reasoning, text })
  fc.assert(
    fc.property(fc.array(fc.nat({ max: answer.length })), (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), answer.length]
      const pieces = at.slice(1).map((end, index) => answer.slice(at[index], end))
      expect(split(pieces)).toEqual({ reasoning, text })
    }),
  )
})

test.each([
  ['<th', '', '', ''],
  [' \n<', '', '', ''],
  ['<th', '<seed:think>', '', ''],
  ['<think>a </thi', '', 'a', ''],
  ['<think>a </thi x', '', 'a </thi x', ''],
  ['<think>a</think> <', '', 'a', '<'],
  ['5 <th', '', '', '5 <th'],
  ['<thx', '', '', '<thx'],
  ['<think>a</think><respon', '</response>', 'a', ''],
  ['<think>a</think><response>b</respon', '</response>', 'a', 'b'],
])(
  'drops an incomplete tag at the end of %j, which a limit has cut off',
  (answer, template, reasoning, text) => {
    for (const pieces of [[answer], [...answer]]) {
      const splitter = splitReasoning('', template)
      const result = [...pieces.flatMap((piece) => splitter.push(piece)), ...splitter.flush(true)]
      expect(joinType(result, 'reasoning')).toBe(reasoning)
      expect(joinType(result, 'text')).toBe(text)
    }
  },
)

test('a prompt can contain the opening tag', () => {
  expect(split(['2 and 3.', '</thi', 'nk>', '\n\n5'], 'user: 2 + 3?\n<think>\n')).toEqual({
    reasoning: '2 and 3.',
    text: '5',
  })
})

test.each([
  ['<seed:think>', '</seed:think>'],
  ['[THINK]', '[/THINK]'],
  ['<|channel>thought', '<channel|>'],
  ['<|START_THINKING|>', '<|END_THINKING|>'],
  ['<mm:think>', '</mm:think>'],
  ['<|inner_prefix|>', '<|inner_suffix|>'],
  ['Here is my thought process:', 'Here is my response:'],
])('the template determines the tags %s and %s', (open, close) => {
  const answer = `${open}\n2 and 3.\n${close}\n5 ${close}`

  const result = split(answer.split(''), '', `{{ '${open}' + message.reasoning_content + '${close}' }}`)

  expect(result).toEqual({ reasoning: '2 and 3.', text: `5 ${close}` })
  expect(split([answer])).toEqual({ reasoning: '', text: answer })
})

test('the template of Hunyuan 3 determines tags with a suffix', () => {
  const result = split(['<think:opensource>a</think:opensource>b'], '', "'</think{}>'.format(suffix)")

  expect(result).toEqual({ reasoning: 'a', text: 'b' })
})

test('Granite’s answer tags are dropped', () => {
  const template =
    'Write your thoughts between <think></think> and your response between <response></response>.'
  const splitter = splitReasoning('', template)

  const result = [
    ...splitter.push('<think>a</think> <response> b'),
    ...splitter.push('</respon'),
    ...splitter.push('se>\n'),
  ]

  expect([...result, ...splitter.flush()]).toEqual([
    { type: 'reasoning', text: 'a' },
    { type: 'text', text: 'b' },
  ])
})

test('unbounded white space is parsed in linear time', () => {
  const splitter = splitReasoning('<think>')
  const startedAt = performance.now()

  splitter.push('a')
  for (let n = 0; n < 300_000; n++) splitter.push(' ')

  // Takes about 100 ms. Quadratic rescans would take a minute.
  expect(performance.now() - startedAt).toBeLessThan(3_000)
})

test('text that cannot start a tag is emitted immediately', () => {
  const splitter = splitReasoning('')

  expect(splitter.push('Hello')).toEqual([{ type: 'text', text: 'Hello' }])
  expect(splitter.push(' <think>')).toEqual([{ type: 'text', text: ' <think>' }])
})
