import { expect, test } from 'vitest'
import { includesModel } from './model-names.ts'

test.each([
  [[], 'tiny:latest', true],
  [['tiny'], 'tiny:latest', true],
  [['tiny:latest'], 'tiny', true],
  [['tiny'], 'tiny:8b', false],
  [['hf.co/*'], 'hf.co/a/b:Q4', true],
  [['hf.co/*'], 'hf-co/a', false],
  [['big', '*-chat'], 'tiny-chat:latest', true],
])('a key for %j may use %s: %s', (models, name, expected) => {
  expect(includesModel(models, name)).toBe(expected)
})
