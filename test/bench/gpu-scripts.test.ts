/** The benchmark of graphics cards, on the processor and with a small model. */
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { modelPath } from '@modelmount/tiny-model'
import { beforeAll, expect, test } from 'vitest'
import { root } from '../packaging/npm.ts'
import { emptyFolder } from '../support/empty-folder.ts'

const folder = emptyFolder()
const packed = join(folder, 'packed')
const work = join(folder, 'work')
const results = join(folder, 'results')
/** From this token on, the built-in vocabulary has plain words. */
const words = '1300'
const run = (...args: readonly string[]) =>
  spawnSync(
    'bash',
    [join(root, 'bench/gpu/run.sh'), '--backend', 'cpu', '--rounds', '1', '--words', words, ...args],
    {
      env: { ...process.env, MODELMOUNT_GPU_WORK: work, MODELMOUNT_GPU_PACKED: packed, OUT: results },
      encoding: 'utf8',
    },
  )

beforeAll(async () => {
  const script = join(root, 'bench/gpu/pack.mjs')
  await promisify(execFile)(process.execPath, [script, '--donor', modelPath, '--into', packed])
}, 600_000)

test('a call without time begins no step, and says so', () => {
  const { status, stdout } = run('--minutes', '0')

  expect({ status, stdout }).toEqual({ status: 3, stdout: 'Stopped before build. Call it again.\n' })
})

test('later calls build both servers, compare them, and write a page with all rows', () => {
  const { status, stdout } = run('--minutes', '60')

  expect(stdout).toMatch(/report took \d+ s\n$/)
  expect(status).toBe(0)
  const page = readFileSync(join(results, 'gpu.md'), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
  for (const label of [
    '8 streams, tokens/s',
    'first token of a prompt of 600 tokens',
    'longest gap of a stream',
  ])
    expect(rows.find((row) => row.startsWith(`| ${label}`))).toMatch(
      /\| \d[\d.]* \| \d[\d.]* \| \d[\d.]* \| \d[\d.]* \|$/,
    )
}, 3_600_000)
