import { expect, test } from 'vitest'
import { ModelAliases } from './model-aliases.ts'

test('a name, any spelling of it, and a pattern mean a model', () => {
  const aliases = new ModelAliases({ 'gpt-5': 'llama3.3', 'claude-*': 'qwen3:8b', 'team/x:1': 'a' })
  const targets = ['gpt-5', 'GPT-5:latest', 'claude-sonnet-4-5', 'Claude-', 'team/x:1'].map((name) =>
    aliases.targetOf(name),
  )

  expect(targets).toEqual(['llama3.3', 'llama3.3', 'qwen3:8b', 'qwen3:8b', 'a'])
  expect(['gpt-5.1', 'gpt-5:8b', 'my-claude-x', 'team/x'].map((name) => aliases.targetOf(name))).toEqual(
    Array(4).fill(undefined),
  )
})

test('an alias comes before all patterns, then the longest pattern, then the later one', () => {
  const aliases = new ModelAliases({
    'claude-haiku-4-5': 'a',
    'claude-*': 'b',
    'claude-haiku*': 'c',
    '*-haiku-4-6': 'd',
    '*': 'e',
    '*x': 'f',
    'y*': 'g',
  })
  const names = ['claude-haiku-4-5', 'claude-sonnet-4-5', 'claude-haiku-4-6', 'claude-haiku-5', 'o3', 'yx']

  expect(names.map((name) => aliases.targetOf(name)).join('')).toBe('abcceg')
})

test('a pattern may end before the tag `latest`, or name another tag', () => {
  const aliases = new ModelAliases({ '*-haiku': 'a', 'gpt-*:mini': 'b' })
  const names = ['claude-haiku', 'claude-haiku:latest', 'gpt-5:mini', 'gpt-5', 'claude-haiku:8b']

  expect(names.map((name) => aliases.targetOf(name))).toEqual(['a', 'a', 'b', undefined, undefined])
})

test('lists aliases without patterns, as they were given, and forgets earlier ones', () => {
  const aliases = new ModelAliases({ old: 'a', 'old-*': 'a' })
  aliases.set({ 'GPT-5': 'b', 'claude-*': 'c' })

  expect(aliases.list()).toEqual([{ alias: 'GPT-5', target: 'b' }])
  expect([aliases.targetOf('old'), aliases.targetOf('old-1')]).toEqual([undefined, undefined])
})

test('a name of several megabytes matches no pattern', () => {
  expect(new ModelAliases({ '*': 'a' }).targetOf('x'.repeat(5_000_000))).toBeUndefined()
})
