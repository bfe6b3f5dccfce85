import { expect, test } from 'vitest'
import type { ProcessConfig } from '../../ipc/process-config.ts'
import { describePlacement } from './gpu-placement.ts'

const gb = 1e9
const describe = (
  wanted: ProcessConfig['gpuLayers'],
  gpuLayers: number,
  total = 8 * gb,
  backend: 'cuda' | false = false,
) =>
  describePlacement(
    { modelName: 'm:latest', gpuLayers: wanted },
    { gpuLayers, totalLayers: 33, vram: { free: 1.2 * gb, total }, backend },
  )

test.each<[wanted: ProcessConfig['gpuLayers'], actual: number]>([
  ['auto', 33],
  ['max', 33],
  [5, 5],
  [99, 33],
  [0, 0],
])('with %j layers wanted and %i on the card, nothing is reported', (wanted, actual) => {
  expect(describe(wanted, actual)).toEqual([])
})

test('a model that runs on the CPU although there is a card is reported, with the reason', () => {
  expect(describe('auto', 0)).toEqual([
    'The model "m:latest" runs on the CPU: the graphics card has 1.2 GB of free memory, too little for its 33 layers.',
  ])
})

test('a model with a part of its layers on the card is reported', () => {
  expect(describe('auto', 12)).toEqual([
    'The model "m:latest" runs 12 of its 33 layers on the graphics card: the graphics card has 1.2 GB of free memory.',
  ])
})

test('without a card, only a wanted number of layers is reported', () => {
  expect([...describe('auto', 0, 0), ...describe(0, 0, 0)]).toEqual([])
  expect(describe('max', 0, 0)).toEqual([
    'The model "m:latest" runs on the CPU: the engine found no graphics card for `gpuLayers: max`.',
  ])
})

test('a build of the engine for cards that finds none is reported', () => {
  expect([...describe('auto', 0, 0, 'cuda'), ...describe(0, 0, 0, 'cuda')]).toEqual([
    'The model "m:latest" runs on the CPU: the engine found no graphics card for `gpuLayers: auto`.',
  ])
})
