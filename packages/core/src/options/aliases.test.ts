import { expect, test } from 'vitest'
import type { Aliases } from '../models/model-aliases.ts'
import { checkOptions } from '../options.ts'

test.each<[Aliases]>([
  [{}],
  [{ 'gpt-5': 'qwen3:8b', 'claude-*': 'hf.co/team/model:Q4_K_M' }],
  // A pattern may match the target of another alias: a target is never looked up as an alias.
  [{ '*': 'qwen3:8b', 'claude-haiku-*': 'qwen3:1b' }],
])('accepts %j', (aliases) => {
  expect(() => checkOptions({ aliases })).not.toThrow()
})

test.each([
  [['a'], 'Expected `aliases` to be an object, got ["a"]'],
  [{ '': 'a' }, "Expected `aliases` to have names or patterns, got ''"],
  [{ ' a': 'b' }, "Expected `aliases` to have names or patterns, got ' a'"],
  [{ a: 5 }, "Expected `aliases['a']` to be the name of a model, got 5 (number)"],
  [{ a: '' }, "Expected `aliases['a']` to be the name of a model, got  (string)"],
  [{ a: 'b*' }, "Expected `aliases['a']` to be the name of a model, got b* (string)"],
  [{ a: 'A:latest' }, "Expected `aliases['a']` to be the name of a model, but 'a' is an alias, too"],
  [{ a: 'b', b: 'c' }, "Expected `aliases['a']` to be the name of a model, but 'b' is an alias, too"],
  [{ 'x*': 'b', B: 'x' }, "Expected `aliases['x*']` to be the name of a model, but 'B' is an alias, too"],
  [
    { a: 'b', 'A:latest': 'c' },
    "Expected `aliases` to have different names, but 'a' and 'A:latest' are the same",
  ],
])('rejects %j, and names the alias', (aliases, message) => {
  expect(() => checkOptions({ aliases: aliases as Aliases })).toThrow(new TypeError(message))
})
