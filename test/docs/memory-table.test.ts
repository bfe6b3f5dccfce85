/** Checks the memory table of the page about models: its arithmetic, and the formula with the built-in model. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { expect, test } from 'vitest'
import { root } from '../packaging/npm.ts'
import { emptyFolder } from '../support/empty-folder.ts'

const page = readFileSync(join(root, 'docs/start/choosing-a-model.md'), 'utf8')
const rows = [...page.matchAll(/^\| ([\w. ]+) \| ([\d.]+) \| (\d+ × \d+ × \d+) \| (.*) \|$/gm)].map(
  ([, name = '', parameters = '', shape = '', columns = '']) => ({ name, parameters, shape, columns }),
)
const models = emptyFolder()

const bitsPerWeight = 4.85
/** Memory of the process itself, in bytes. */
const processBytes = 0.12e9

/** Bytes of the KV cache per token, in f16. */
function kvBytes(shape: string): number {
  const [layers = 0, heads = 0, headSize = 0] = shape.split(' × ').map(Number)
  return 2 * layers * heads * headSize * 2
}

test.each(rows)('$name', ({ parameters, shape, columns }) => {
  const weights = (Number(parameters) * 1e9 * bitsPerWeight) / 8
  const total = (tokens: number): string =>
    `${((weights + kvBytes(shape) * tokens + processBytes) / 1e9).toFixed(1)} GB`

  expect(columns).toBe(
    `${(weights / 1e9).toFixed(1)} GB | ${(kvBytes(shape) / 1e3).toFixed(0)} MB | ${total(4 * 4_096)} | ${total(32_768)}`,
  )
})

test('the table has models of each size', () => {
  expect(rows.length).toBeGreaterThan(5)
})

test('the engine estimates the KV cache of the built-in model like the formula', async () => {
  const sizeWith = async (contextSize: number): Promise<number> => {
    const llm = await createLlm({ models, local: { contextSize, parallel: 1 } })
    try {
      await llm.load('tiny')
      return llm.loaded()[0]?.sizeBytes ?? 0
    } finally {
      await llm.close()
    }
  }

  const perToken = ((await sizeWith(4_096)) - (await sizeWith(2_048))) / 2_048

  expect(perToken / kvBytes('6 × 4 × 64')).toBeGreaterThan(0.95)
  expect(perToken / kvBytes('6 × 4 × 64')).toBeLessThan(1.1)
})
