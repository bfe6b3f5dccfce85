import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { PartFiles, planParts } from './partial.ts'

let folder: string
let files: PartFiles
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'partial-'))
  files = new PartFiles(join(folder, 'sha256-aa-partial'))
})
afterEach(() => rm(folder, { recursive: true }))

const state = (number: number) => `${files.path}-${number}`

test.each([
  [0, []],
  [1, [1]],
  [100e6, [100e6]],
  [250e6, [100e6, 100e6, 50e6]],
  [500e6, [100e6, 100e6, 100e6, 100e6, 100e6]],
])('%d bytes are divided into parts of %j', (sizeBytes, sizes) => {
  expect(planParts(sizeBytes).map(({ size }) => size)).toEqual(sizes)
})

test('parts grow with the size of a blob, up to 1 GB', () => {
  expect(planParts(64 * 300e6).map(({ size }) => size)).toEqual(Array.from({ length: 64 }, () => 300e6))
  expect(planParts(700e9)).toHaveLength(700)
})

test('the state of each part is stored in Ollama’s format', async () => {
  const parts = await files.reset(planParts(250, 100))
  await writeFile(files.path, Buffer.alloc(250))
  const [, second] = parts

  if (second) await files.save({ ...second, completed: 42 })

  expect(JSON.parse(await readFile(state(1), 'utf8'))).toEqual({
    N: 1,
    Offset: 100,
    Size: 100,
    Completed: 42,
  })
  expect((await files.read(250))?.map(({ completed }) => completed)).toEqual([0, 42, 0])
})

test('a download that Ollama has begun is resumed', async () => {
  await writeFile(files.path, Buffer.alloc(250))
  await writeFile(state(0), '{"N":0,"Offset":0,"Size":200,"Completed":150}\n')
  await writeFile(state(1), '{"N":1,"Offset":200,"Size":50,"Completed":50}\n')

  expect(await files.read(250)).toEqual([
    { number: 0, offset: 0, size: 200, completed: 150 },
    { number: 1, offset: 200, size: 50, completed: 50 },
  ])
})

test.each([
  ['a gap', ['{"N":0,"Offset":0,"Size":100,"Completed":0}', '{"N":1,"Offset":150,"Size":100,"Completed":0}']],
  ['an end too early', ['{"N":0,"Offset":0,"Size":249,"Completed":0}']],
  ['more completed bytes than their size', ['{"N":0,"Offset":0,"Size":250,"Completed":251}']],
  ['negative completed bytes', ['{"N":0,"Offset":0,"Size":250,"Completed":-1}']],
  ['a truncated state', ['{"N":0,"Offset":0,"Si']],
  ['an empty state file', ['']],
  ['no state files', []],
])('parts with %s are discarded', async (_, states) => {
  await writeFile(files.path, Buffer.alloc(250))
  for (const [number, text] of states.entries()) await writeFile(state(number), text)

  expect(await files.read(250)).toBeUndefined()
  await files.reset(planParts(250))
  expect(await readdir(folder)).toEqual(['sha256-aa-partial', 'sha256-aa-partial-0'])
})

test('states without a partial file are not resumed', async () => {
  await files.reset(planParts(250))

  expect(await files.read(250)).toBeUndefined()
  await writeFile(files.path, Buffer.alloc(249))
  expect(await files.read(250)).toBeUndefined()
})

test('states of other blobs are kept', async () => {
  const other = `${files.path.replace('aa', 'bb')}-0`
  await writeFile(other, '')
  await writeFile(`${files.path}-notes`, '')

  await files.reset(planParts(250))
  await files.removeStates()

  expect((await readdir(folder)).sort()).toEqual(['sha256-aa-partial-notes', 'sha256-bb-partial-0'])
})
