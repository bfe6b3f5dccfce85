import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LlmOptions } from '@modelmount/core'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { readConfigFile } from './config-file.ts'

const folder = emptyFolder()
const write = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

test.each([
  ['options.json', '{ "maxQueued": 7 }'],
  ['options.mjs', 'export default { maxQueued: 7 }'],
  ['options.cjs', 'module.exports = { maxQueued: 7 }'],
  ['options.js', 'module.exports = { maxQueued: 7 }'],
])('reads %s', async (name, text) => {
  expect(await readConfigFile(write(name, text))).toEqual({ maxQueued: 7 })
})

test.each([
  ['again.json', '{ "maxQueued": 8 }', '{ "maxQueued": 9 }'],
  ['again.mjs', 'export default { maxQueued: 8 }', 'export default { maxQueued: 9 }'],
  ['again.cjs', 'module.exports = { maxQueued: 8 }', 'module.exports = { maxQueued: 9 }'],
])('reads %s again as it is then', async (name, before, after) => {
  const first = await readConfigFile(write(name, before))

  const second = await readConfigFile(write(name, after))

  expect([first, second]).toEqual([{ maxQueued: 8 }, { maxQueued: 9 }])
})

test('paths are relative to the file', async () => {
  mkdirSync(join(folder, 'etc'))
  const options: LlmOptions = {
    models: [
      'models',
      '/absolute.gguf',
      '~/home',
      { name: 'a', file: 'a.gguf', adapters: [{ file: 'b.gguf' }] },
    ],
    database: '../data/app.db',
    batches: { database: 'batches.db' },
    store: { credentials: 'auth.json', prune: true },
    local: { runtimeDir: 'run', modelProcessPath: './main.js', threads: 1 },
  }

  const read = await readConfigFile(write('etc/options.json', JSON.stringify(options)))

  const etc = join(folder, 'etc')
  expect(read).toEqual({
    models: [
      join(etc, 'models'),
      '/absolute.gguf',
      '~/home',
      { name: 'a', file: join(etc, 'a.gguf'), adapters: [{ file: join(etc, 'b.gguf') }] },
    ],
    database: join(folder, 'data/app.db'),
    batches: { database: join(etc, 'batches.db') },
    store: { credentials: join(etc, 'auth.json'), prune: true },
    local: { runtimeDir: join(etc, 'run'), modelProcessPath: join(etc, 'main.js'), threads: 1 },
  })
})

test.each([':memory:', 'postgres://localhost/app', 'postgresql://localhost/app'])(
  'the database %s is no path',
  async (database) => {
    expect(await readConfigFile(write('database.json', JSON.stringify({ database })))).toEqual({ database })
  },
)

test('values of wrong types stay, so that core names them', async () => {
  const wrong = { models: { file: 5 }, local: 'all', batches: [], database: 1 }

  expect(await readConfigFile(write('wrong.json', JSON.stringify(wrong)))).toEqual(wrong)
})

const isTypeScriptSupported = Boolean((process.features as { readonly typescript?: unknown }).typescript)

test.each([
  ['broken.json', '{ "a": ', 'cannot be read: Unexpected end of JSON input'],
  ['list.json', '[]', 'Expected an object of options in .*list.json, got \\[\\]'],
  ['null.json', 'null', 'got null'],
  ['text.mjs', 'export default "text"', 'got a string'],
  ['none.mjs', 'export const options = {}', 'to export the options: export default { … }'],
  ['throws.mjs', 'throw new Error("no key")', 'throws.mjs cannot be read: no key'],
  ['lacks.mjs', 'import "./none-such.mjs"', 'lacks.mjs cannot be read: .*none-such.mjs'],
  ['options.yaml', 'a: 1', 'Expected a file .json, .js, .mjs, .cjs, .ts, .mts or .cts, got .*options.yaml'],
])('%s is rejected with a reason in one line', async (name, text, reason) => {
  await expect(readConfigFile(write(name, text))).rejects.toThrow(new RegExp(`^--config: .*${reason}.*$`))
})

test('a missing file is named', async () => {
  const file = join(folder, 'missing.mjs')

  await expect(readConfigFile(file)).rejects.toThrow(`--config: ${file} does not exist.`)
})

test('reads TypeScript where Node.js loads it, and rejects it elsewhere', async () => {
  const reading = readConfigFile(write('options.mts', 'export default { maxQueued: 7 as number }'))

  if (isTypeScriptSupported) expect(await reading).toEqual({ maxQueued: 7 })
  else
    await expect(reading).rejects.toThrow(
      `options.mts is TypeScript, which Node.js ${process.version} does not load. Use Node.js 22.18 or later`,
    )
})
