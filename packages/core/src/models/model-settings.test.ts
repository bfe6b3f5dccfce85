import { expect, test } from 'vitest'
import { createSettingsFinder } from './model-settings.ts'

const sizes = (entries: Readonly<Record<string, number>>) => {
  const find = createSettingsFinder(
    Object.fromEntries(Object.entries(entries).map(([entry, contextSize]) => [entry, { contextSize }])),
  )
  return (name: string) => find(name).contextSize
}

test('a name means the tag `latest`, in any case', () => {
  const find = sizes({ 'llama3.2': 100, 'Team/Tiny:8b': 200 })

  expect(['llama3.2:latest', 'llama3.2', 'LLAMA3.2', 'team/tiny:8B'].map(find)).toEqual([100, 100, 100, 200])
  expect(['llama3.2:1b', 'llama3', 'team/tiny'].map(find)).toEqual([undefined, undefined, undefined])
})

test('a full name and a short name are the same name', () => {
  expect(sizes({ 'registry.ollama.ai/library/tiny:latest': 100 })('tiny:latest')).toBe(100)
})

test('a pattern covers the tag, and `*` stands for any characters, even none', () => {
  const find = sizes({ 'qwen*:8b': 100, 'team/*': 200 })

  expect(['qwen:8b', 'qwen3:8b', 'qwen3-coder:8B', 'team/x:latest', 'team/x'].map(find)).toEqual([
    ...[100, 100, 100, 200, 200],
  ])
  expect(['qwen3:8b-q4', 'my-qwen3:8b', 'teams/x'].map(find)).toEqual([undefined, undefined, undefined])
})

test('the parts of a pattern do not overlap', () => {
  const find = sizes({ 'ab*ba': 100, 'x*yz*z': 200 })

  expect(['aba', 'abba', 'abxba'].map((name) => find(`${name}`))).toEqual([undefined, undefined, undefined])
  expect(['xyz', 'xyzz:z', 'xyzz'].map((name) => find(name))).toEqual([undefined, 200, undefined])
})

test('characters of regular expressions have no meaning', () => {
  const find = sizes({ 'a.b*': 100, '[x](*': 200 })

  expect(['a.b', 'axb', '[x](y'].map(find)).toEqual([100, undefined, 200])
})

test('each field comes from the most specific entry that sets it', () => {
  const find = createSettingsFinder({
    'qwen3:8b': { contextSize: 8_192, sampling: { topK: 20 } },
    'qwen3*': { parallel: 2, contextSize: 4_096, sampling: { topK: 10, temperature: 0.5 } },
    '*': { parallel: 1, keepAlive: 'forever', sampling: { temperature: 1, minP: 0.1 } },
  })

  expect(find('qwen3:8b')).toEqual({
    contextSize: 8_192,
    parallel: 2,
    keepAlive: 'forever',
    sampling: { topK: 20, temperature: 0.5, minP: 0.1 },
  })
  expect(find('other:latest')).toEqual({
    ...{ parallel: 1, keepAlive: 'forever', sampling: { temperature: 1, minP: 0.1 } },
  })
})

test('of two patterns of the same length, the later one wins', () => {
  expect(sizes({ 'qwen*': 100, '*:8bb': 200 })('qwen:8bb')).toBe(200)
  expect(sizes({ '*:8bb': 200, 'qwen*': 100 })('qwen:8bb')).toBe(100)
})

test('a model without settings has none, and a name keeps its object', () => {
  const find = createSettingsFinder({ 'qwen*': { parallel: 2 }, '*3*': { contextSize: 100 } })

  expect(find('tiny:latest')).toEqual({})
  expect(find('qwen3:8b')).toBe(find('qwen3:8b'))
})

test('a long hostile name is matched quickly', () => {
  const find = sizes({ 'a*a*a*a*a*a*a*a*b': 100 })
  const startedAt = performance.now()

  expect(find('a'.repeat(100_000))).toBeUndefined()
  expect(performance.now() - startedAt).toBeLessThan(1_000)
})
