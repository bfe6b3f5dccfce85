import { expect, test } from 'vitest'
import { ModelParameters, parseParameters, toContextSize, toSampling, toStops } from './parameters.ts'

test('each parameter has a type and a range', () => {
  expect(Object.keys(ModelParameters.shape).sort()).toEqual(
    [
      ...['temperature', 'top_k', 'top_p', 'min_p', 'typical_p', 'seed', 'stop', 'num_predict', 'num_ctx'],
      ...['repeat_penalty', 'repeat_last_n', 'presence_penalty', 'frequency_penalty', 'num_keep'],
      ...['num_batch', 'num_gpu', 'main_gpu', 'num_thread', 'draft_num_predict', 'use_mmap'],
    ].sort(),
  )
})

test('invalid and unknown parameters of a model are reported and dropped', () => {
  const { parameters, problems } = parseParameters({
    temperature: 'hot',
    top_k: 3.7,
    top_p: 2,
    stop: ['a', 5],
    mirostat: 1,
    constructor: 1,
    seed: null,
  })

  expect(parameters).toEqual({ top_k: 3 })
  expect(problems.map((problem) => problem.split('`')[1])).toEqual([
    'temperature',
    'top_p',
    'stop',
    'mirostat',
    'constructor',
  ])
})

test('a single stop sequence can be a string', () => {
  expect(parseParameters({ stop: 'x' })).toEqual({ parameters: { stop: ['x'] }, problems: [] })
})

test('only given parameters become sampling options', () => {
  expect(toSampling({})).toEqual({})
  expect(toSampling({ seed: -1, temperature: 0, repeat_penalty: 1.1 })).toEqual({
    temperature: 0,
    repeatPenalty: 1.1,
    seed: 'random',
  })
})

test('empty stop sequences are dropped', () => {
  expect(toStops({ stop: ['', 'a'] })).toEqual(['a'])
  expect(toStops({})).toBeUndefined()
})

test.each([
  [{}, undefined],
  [{ num_ctx: 0 }, undefined],
  [{ num_ctx: -1 }, undefined],
  [{ num_ctx: 4 }, 16],
  [{ num_ctx: 2048 }, 2048],
])('%j is a context of %s tokens', (parameters, size) => {
  expect(toContextSize(parameters)).toBe(size)
})
