import { expect, test } from 'vitest'
import { closestName } from './closest-name.ts'

const names = ['maxTokens', 'topP', 'stop', 'schema', 'seed']

test.each([
  ['max_tokens', 'maxTokens'],
  ['MaxTokens', 'maxTokens'],
  ['maxToken', 'maxTokens'],
  ['top-p', 'topP'],
  ['stpo', undefined],
  ['shcema', 'schema'],
  ['see', 'seed'],
  ['x', undefined],
  ['', undefined],
  ['presence', undefined],
  ['y'.repeat(100_000), undefined],
])('%.20s suggests %s', (given, suggested) => {
  expect(closestName(given, names)).toBe(suggested)
})
