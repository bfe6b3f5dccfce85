import { expect, test } from 'vitest'
import { ModelAliases, orderTargets } from './model-aliases.ts'

const targetOf = (aliases: ModelAliases, name: string) => aliases.targetsOf(name)?.[0]

test('a name, any spelling of it, and a pattern mean a model', () => {
  const aliases = new ModelAliases({ 'gpt-5': 'llama3.3', 'claude-*': 'qwen3:8b', 'team/x:1': 'a' })
  const targets = ['gpt-5', 'GPT-5:latest', 'claude-sonnet-4-5', 'Claude-', 'team/x:1'].map((name) =>
    targetOf(aliases, name),
  )

  expect(targets).toEqual(['llama3.3', 'llama3.3', 'qwen3:8b', 'qwen3:8b', 'a'])
  expect(['gpt-5.1', 'gpt-5:8b', 'my-claude-x', 'team/x'].map((name) => targetOf(aliases, name))).toEqual(
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

  expect(names.map((name) => targetOf(aliases, name)).join('')).toBe('abcceg')
})

test('a pattern may end before the tag `latest`, or name another tag', () => {
  const aliases = new ModelAliases({ '*-haiku': 'a', 'gpt-*:mini': 'b' })
  const names = ['claude-haiku', 'claude-haiku:latest', 'gpt-5:mini', 'gpt-5', 'claude-haiku:8b']

  expect(names.map((name) => targetOf(aliases, name))).toEqual(['a', 'a', 'b', undefined, undefined])
})

test('lists aliases without patterns, as they were given, and forgets earlier ones', () => {
  const aliases = new ModelAliases({ old: 'a', 'old-*': 'a' })
  aliases.set({ 'GPT-5': 'b', 'claude-*': 'c' })

  expect(aliases.list()).toEqual([{ alias: 'GPT-5', target: 'b' }])
  expect([targetOf(aliases, 'old'), targetOf(aliases, 'old-1')]).toEqual([undefined, undefined])
})

test('a name of several megabytes matches no pattern', () => {
  expect(targetOf(new ModelAliases({ '*': 'a' }), 'x'.repeat(5_000_000))).toBeUndefined()
})

test('of a list, the models come in its order, and with weights the drawn one comes first', () => {
  const weighted = [
    { model: 'a', weight: 1 },
    { model: 'b', weight: 0 },
    { model: 'c', weight: 3 },
  ]
  const draw = (drawn: number) => orderTargets(weighted, () => drawn).join('')

  expect(orderTargets('a')).toEqual(['a'])
  expect(orderTargets(['b', 'a'], () => 0.99)).toEqual(['b', 'a'])
  expect([0, 0.24, 0.25, 0.99].map(draw)).toEqual(['abc', 'abc', 'cab', 'cab'])
})
