import type { LlamaGrammarEvaluationState, LlamaModel, Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { config } from '../../../../../../../test/support/bindings.ts'
import { noiseModel, recurrentModel } from '../../../../../../../test/support/models.ts'
import { findJsonTokens, JsonAutoClose, type JsonTokens } from './json-auto-close.ts'
import { loadModel } from './load.ts'

const tokenOf = (letter: string): Token => letter.charCodeAt(0) as Token
const marks: JsonTokens = {
  quote: tokenOf('"'),
  brackets: [tokenOf('}'), tokenOf(']')],
  letters: [tokenOf(')'), tokenOf('a')],
  newline: tokenOf('\n'),
}
const end = 0 as Token

/** @param places tokens that the grammar allows after each emitted token */
function closingAt(...places: readonly string[]) {
  const [first = '', ...others] = places
  let allowed = first
  const accepted: string[] = []
  const grammars = {
    canBeNextTokenForGrammarEvaluationState: (_state: object, token: Token) =>
      allowed.includes(String.fromCharCode(token)),
    acceptGrammarEvaluationStateToken(_state: object, token: Token) {
      accepted.push(String.fromCharCode(token))
      allowed = others.shift() ?? ''
    },
  }
  const state = { _state: {} } as unknown as LlamaGrammarEvaluationState
  return { closing: new JsonAutoClose(marks, grammars, state, (token) => token === end), accepted }
}

test.each([
  ['a string', '"\\)}],ab', '"'],
  ['a string of small letters', '"ab', '"'],
  ['a string that may not end yet', ')}]ab', undefined],
  ['half of an escape', '"\\bfnrtu', undefined],
  ['an object after a value', ',}', '}'],
  ['an object after a digit', '0123.eE,}', '}'],
  ['an empty object', '"}', '}'],
  ['a list with all required items', ',]', ']'],
  ['a list before its first value', '"{[-0123456789tfn]', ']'],
  ['a required value', '"{[-0123456789tfn', undefined],
  ['a literal', 'a', undefined],
  ['reasoning', '\n"\\)}],ab', undefined],
  ['the end of the value', '\0', undefined],
])('when the model would end, this is closed if possible: %s', (_place, allowed, closer) => {
  const { closing } = closingAt(allowed)

  expect(closing.chooseCloser(end)).toBe(closer && tokenOf(closer))
})

test('no JSON is closed while the model would continue', () => {
  const { closing } = closingAt('"\\)}],ab')

  expect(closing.chooseCloser(tokenOf('b'))).toBeUndefined()
})

test('a value is closed as soon as the grammar allows it, and then the model decides again', () => {
  const { closing, accepted } = closingAt(')}ab', '"){}ab', ',}')

  const first = closing.chooseCloser(end)
  closing.accept(tokenOf('b'))
  const second = closing.chooseCloser(tokenOf('b'))
  closing.accept(tokenOf('"'))
  const third = closing.chooseCloser(tokenOf(','))

  expect([first, second, third]).toEqual([undefined, tokenOf('"'), undefined])
  expect(accepted).toEqual(['b', '"'])
})

test('an end that the grammar allows closes no JSON', () => {
  const { closing, accepted } = closingAt('"{', '\0', '"){}ab')

  closing.chooseCloser(end)
  closing.accept(tokenOf('{'))
  closing.chooseCloser(end)
  closing.accept(end)
  closing.accept(tokenOf('"'))

  expect(closing.chooseCloser(tokenOf('b'))).toBeUndefined()
  expect(accepted).toEqual(['{', '"'])
})

test.each([
  ['with bytes', config.modelPath],
  ['with another set of bytes', recurrentModel],
  ['that adds leading spaces', noiseModel],
])('the JSON tokens of a vocabulary %s are single characters', async (_kind, modelPath) => {
  let model: LlamaModel | undefined
  await loadModel({ ...config, modelPath }, { steps: 0 }, (_llama, loaded) => {
    model = loaded
    return undefined
  })
  if (!model) throw new Error('no model')

  const { quote, brackets, letters, newline } = findJsonTokens(model) ?? {}

  const texts = [quote, ...(brackets ?? []), ...(letters ?? []), newline].map((token) =>
    token === undefined ? undefined : model?.detokenize([token], false, [token]),
  )
  expect(texts).toEqual(['"', '}', ']', ')', 'a', '\n'])
})

test('a vocabulary that lacks one of the JSON tokens has no JSON tokens', () => {
  const letters = [...'\n"}])']
  const model = {
    tokenize: (text: string) => [...text].map((letter) => letters.indexOf(letter) as Token),
    detokenize: ([token]: readonly Token[]) => letters[token as number] ?? '',
  }

  expect(findJsonTokens(model as unknown as LlamaModel)).toBeUndefined()
})
