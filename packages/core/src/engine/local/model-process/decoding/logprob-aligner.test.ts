import { expect, test } from 'vitest'
import { LogprobAligner } from './logprob-aligner.ts'

/** Tokens that are called as their text. */
function drawn(...texts: string[]): LogprobAligner<string> {
  const tokens = new LogprobAligner<string>()
  for (const text of texts) tokens.push(text, text)
  return tokens
}

test('each piece takes its tokens, once', () => {
  const tokens = drawn('Hel', 'lo')
  expect(tokens.take('Hello')).toEqual(['Hel', 'lo'])

  tokens.push(' you', ' you')

  expect(tokens.take(' you')).toEqual([' you'])
})

test('a token goes with the piece that says its beginning', () => {
  const tokens = drawn('one <', 'b')

  expect(tokens.take('one ')).toEqual(['one <'])
  expect(tokens.take('<b')).toEqual(['b'])
})

test('text that is held back keeps its tokens until it is said', () => {
  const tokens = drawn('a', 'b', 'a')

  expect(tokens.take('a')).toEqual(['a'])
  expect(tokens.take('ba')).toEqual(['b', 'a'])
})

test('the parts of a character come with it', () => {
  const tokens = drawn('a')
  tokens.push('é1', '')
  tokens.push('é2', 'é')

  expect(tokens.take('a')).toEqual(['a'])
  expect(tokens.take('é')).toEqual(['é1', 'é2'])
})

test('markup in front of a piece takes its tokens along', () => {
  const tokens = drawn('think', '</', 'think>', '\n\n', 'th')

  expect(tokens.take('think')).toEqual(['think'])
  expect(tokens.take('th')).toEqual(['th'])
})

test('tokens of a call are in no piece of text', () => {
  const tokens = drawn('{"a": ', '1', '}')
  tokens.skip()
  tokens.push('\n', '\n')
  tokens.push('{', '{')

  expect(tokens.take('{')).toEqual(['{'])
})

test('after what was never said, text is found again', () => {
  const tokens = drawn('a')

  expect(tokens.take('unknown')).toEqual(['a'])
  tokens.push('b', 'b')
  expect(tokens.take('b')).toEqual(['b'])
})
