import { expect, test } from 'vitest'
import { canShareCards, readCardSelection } from './card-selection.ts'

test('the lists of cards are read from the environment', () => {
  expect(readCardSelection({ CUDA_VISIBLE_DEVICES: '0,1', HIP_VISIBLE_DEVICES: '', PATH: '/bin' })).toEqual({
    CUDA_VISIBLE_DEVICES: '0,1',
  })
})

test.each([
  [{}, {}, true],
  [{}, { CUDA_VISIBLE_DEVICES: '1' }, true],
  [{ HIP_VISIBLE_DEVICES: '0' }, { CUDA_VISIBLE_DEVICES: '1' }, true],
  [{ CUDA_VISIBLE_DEVICES: '0,1' }, { CUDA_VISIBLE_DEVICES: '1,2' }, true],
  [{ CUDA_VISIBLE_DEVICES: '0' }, { CUDA_VISIBLE_DEVICES: '1' }, false],
  [{ CUDA_VISIBLE_DEVICES: '1' }, { CUDA_VISIBLE_DEVICES: '10' }, false],
])('processes with %j and %j may use the same card: %j', (one, other, expected) => {
  expect([canShareCards(one, other), canShareCards(other, one)]).toEqual([expected, expected])
})
