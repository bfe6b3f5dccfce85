import { chmodSync, cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { inspectMachine } from './inspect-machine.ts'

const core = fileURLToPath(new URL('../../', import.meta.url))
const modules = fileURLToPath(new URL('../../../../node_modules/', import.meta.url))
const folder = emptyFolder()
const processFile = 'dist/engine/local/model-process/main.js'

/** Installs core in a folder with all of its dependencies but some. */
function installCore(name: string, isLeftOut: (dependency: string) => boolean): string {
  const target = join(folder, name, 'node_modules')
  mkdirSync(join(target, '@modelmount/core'), { recursive: true })
  for (const dependency of readdirSync(modules))
    if (!/^\.|^@modelmount$|^@node-llama-cpp$/.test(dependency) && !isLeftOut(dependency))
      symlinkSync(join(modules, dependency), join(target, dependency))
  for (const file of ['dist', 'package.json'])
    cpSync(join(core, file), join(target, '@modelmount/core', file), { recursive: true })
  return join(target, '@modelmount/core', processFile)
}

const inspectWith = (modelProcessPath: string) => inspectMachine({ local: { modelProcessPath } })

/** A program that takes the place of the model process. */
function programOf(name: string, code: string): string {
  const file = join(folder, `${name}.mjs`)
  writeFileSync(file, code)
  return file
}

test('reports the engine, the memory and the cores of this machine', async () => {
  const { engine, memory, cpu } = await inspectMachine()

  expect(engine).toMatchObject({ version: '3.22.1', gpu: false, cards: [], totalVramBytes: 0 })
  expect('cpuFeatures' in engine && engine.cpuFeatures.length).toBeGreaterThan(0)
  expect(memory?.totalBytes).toBeLessThanOrEqual(totalmem())
  expect(memory?.freeBytes).toBeGreaterThan(0)
  expect(memory?.ramDisk.requiredBytes).toBe(256 * 2 ** 20)
  expect(cpu).toEqual({ cores: availableParallelism(), threads: Math.max(1, availableParallelism() - 1) })
})

test('names the command that installs a missing engine', async () => {
  const { engine, memory } = await inspectWith(
    installCore('without-library', (name) => name === 'node-llama-cpp'),
  )

  expect(engine).toEqual({
    version: '',
    problem: 'The engine is not installed. Install it with: npm install node-llama-cpp@3.22.1',
  })
  expect(memory?.freeBytes).toBeGreaterThan(0)
})

test('names the command that installs the missing build of this platform', async () => {
  const file = installCore('without-build', (name) => name === 'node-llama-cpp')
  const library = join(folder, 'without-build/node_modules/node-llama-cpp')
  mkdirSync(library)
  for (const name of ['dist', 'package.json', 'llama'])
    cpSync(join(modules, 'node-llama-cpp', name), join(library, name), { recursive: true })

  expect((await inspectWith(file)).engine).toEqual({
    version: '3.22.1',
    problem: expect.stringMatching(
      /^The engine for .* is not installed\. Install it with: npm install @node-llama-cpp\//,
    ),
  })
})

test.each([
  ['crashes', 'process.kill(process.pid, "SIGILL")', 'The engine crashed with SIGILL.'],
  [
    'fails',
    'process.stderr.write("no driver\\n"); process.exitCode = 3',
    'The engine ended with the exit code 3. Its last line: no driver',
  ],
])('an engine that %s is a problem, and the memory is known', async (name, code, problem) => {
  const file = programOf(name, `process.stdout.write('{"freeBytes":1}\\nnot JSON\\n'); ${code}`)

  expect(await inspectWith(file)).toMatchObject({ engine: { problem }, memory: { freeBytes: 1 } })
})

test.skipIf(process.platform === 'win32')('says why apps cannot share a runtime folder', async () => {
  const shared = join(folder, 'shared')
  mkdirSync(shared)
  chmodSync(shared, 0o755)
  const file = join(folder, 'file')
  writeFileSync(file, '')
  const problemOf = async (runtimeDir: string) =>
    (await inspectMachine({ local: { runtimeDir, modelProcessPath: programOf('empty', '') } })).runtimeDir
      .problem

  expect(await problemOf(shared)).toBe('not-private')
  expect(await problemOf(join(file, 'inside'))).toBe('unwritable')
  expect(await problemOf(join(folder, 'x'.repeat(75)))).toBe('too-long')
  expect(await problemOf(join(folder, 'new'))).toBeUndefined()
})
