import { expect, test } from 'vitest'
import { LogprobAligner } from './logprob-aligner.ts'

/** An aligner with sampled tokens, each named by its text. */
function drawn(...texts: string[]): LogprobAligner<string> {
  const tokens = new LogprobAligner<string>()
  for (const text of texts) tokens.push(text, text)
  return tokens
}

test('each text takes its tokens once', () => {
  const tokens = drawn('Hel', 'lo')
  expect(tokens.take('Hello')).toEqual(['Hel', 'lo'])

  tokens.push(' you', ' you')

  expect(tokens.take(' you')).toEqual([' you'])
})

test('a token belongs to the text with its first character', () => {
  const tokens = drawn('one <', 'b')

  expect(tokens.take('one ')).toEqual(['one <'])
  expect(tokens.take('<b')).toEqual(['b'])
})

test('buffered text keeps its tokens until it is emitted', () => {
  const tokens = drawn('a', 'b', 'a')

  expect(tokens.take('a')).toEqual(['a'])
  expect(tokens.take('ba')).toEqual(['b', 'a'])
})

test('the tokens of one character stay together', () => {
  const tokens = drawn('a')
  tokens.push('é1', '')
  tokens.push('é2', 'é')

  expect(tokens.take('a')).toEqual(['a'])
  expect(tokens.take('é')).toEqual(['é1', 'é2'])
})

test('markup before a text drops its tokens', () => {
  const tokens = drawn('think', '</', 'think>', '\n\n', 'th')

  expect(tokens.take('think')).toEqual(['think'])
  expect(tokens.take('th')).toEqual(['th'])
})

test('tokens of a tool call belong to no text', () => {
  const tokens = drawn('{"a": ', '1', '}')
  tokens.skip()
  tokens.push('\n', '\n')
  tokens.push('{', '{')

  expect(tokens.take('{')).toEqual(['{'])
})

test('text is found again after text that is never emitted', () => {
  const tokens = drawn('a')

  expect(tokens.take('unknown')).toEqual(['a'])
  tokens.push('b', 'b')
  expect(tokens.take('b')).toEqual(['b'])
})
