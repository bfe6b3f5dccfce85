import { expect, test } from 'vitest'
import { checkGraphics } from './graphics.ts'

const engine = {
  ...{
    version: '3.22.1',
    llamaCpp: 'b1',
    gpu: false as const,
    cards: [],
    freeVramBytes: 0,
    totalVramBytes: 0,
  },
  cpuFeatures: [],
} as const
const none = { hasNvidia: false, hasAmd: false }

test('a machine without cards is ok', () => {
  expect(checkGraphics({ engine }, '3.22.1', none)).toMatchObject({
    status: 'ok',
    message: expect.stringContaining('CPU'),
  })
})

test('a card in use is named with its memory', () => {
  const cards = ['NVIDIA H100']
  const memory = { freeVramBytes: 40e9, totalVramBytes: 80e9 }

  expect(
    checkGraphics({ engine: { ...engine, gpu: 'cuda', cards, ...memory } }, '3.22.1', none),
  ).toMatchObject({
    status: 'ok',
    message: 'NVIDIA H100 with cuda, 40 GB of 80 GB free',
  })
})

test.each([
  [{ hasNvidia: true, hasAmd: false }, /^npm install @node-llama-cpp\/\w+-x64-cuda@3\.22\.1$/],
  [{ hasNvidia: false, hasAmd: true }, /^npm install @node-llama-cpp\/linux-x64-vulkan@3\.22\.1$/],
])('a driver whose card is not used is a warning with the missing build: %j', (drivers, fix) => {
  expect(checkGraphics({ engine }, '3.22.1', drivers)).toMatchObject({
    status: 'warning',
    fix: expect.stringMatching(fix),
  })
})
