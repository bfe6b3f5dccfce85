import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readLibraryVersion } from './library-version.ts'

/** An app with a model process file, and with a library of this version. */
function createApp(version?: string): string {
  const app = mkdtempSync(join(tmpdir(), 'app-'))
  onTestFinished(() => rmSync(app, { recursive: true }))
  if (version !== undefined) {
    const library = join(app, 'node_modules/node-llama-cpp')
    mkdirSync(join(library, 'dist'), { recursive: true })
    writeFileSync(join(library, 'package.json'), manifestOf({ name: 'node-llama-cpp', version }))
    // A folder of compiled code may have a manifest, too.
    writeFileSync(join(library, 'dist/package.json'), manifestOf({ type: 'module' }))
    writeFileSync(join(library, 'dist/index.js'), 'throw new Error("loaded")')
  }
  mkdirSync(join(app, 'build'))
  return join(app, 'build/model-process.js')
}
const manifestOf = (parts: object): string =>
  JSON.stringify({ exports: { '.': './dist/index.js' }, ...parts })

test('reads the version of the library that the model process file resolves, without loading it', () => {
  expect([createApp('3.22.1'), createApp('4.0.0')].map(readLibraryVersion)).toEqual(['3.22.1', '4.0.0'])
})

test('finds the library of this repository', () => {
  const { version } = createRequire(import.meta.url)(
    '../../../../../../node_modules/node-llama-cpp/package.json',
  )

  expect(readLibraryVersion(import.meta.filename)).toBe(version)
})

test('without the library, or with a damaged manifest, the version is empty', () => {
  const damaged = createApp('1')
  writeFileSync(join(damaged, '../../node_modules/node-llama-cpp/package.json'), '{')

  expect([createApp(), damaged].map(readLibraryVersion)).toEqual(['', ''])
})
