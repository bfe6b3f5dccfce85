import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../../../test/support/empty-folder.ts'
import {
  describeBrokenBuild,
  describeMissingBuild,
  type EnginePlatform,
  findEngineProblem,
  findPlatformProblem,
} from './missing-engine.ts'

const platform = (name: string, change: Partial<EnginePlatform> = {}): EnginePlatform => ({
  name,
  glibc: name.startsWith('linux-') ? '2.36' : undefined,
  findBuild: () => undefined,
  ...change,
})
const problem = (name: string, change: Partial<EnginePlatform> = {}) =>
  findPlatformProblem('3.22.1', platform(name, change))

test.each([
  ['linux-x64', 'linux-x64'],
  ['linux-arm64', 'linux-arm64'],
  ['darwin-arm64', 'mac-arm64-metal'],
  ['darwin-x64', 'mac-x64'],
  ['win32-x64', 'win-x64'],
  ['win32-arm64', 'win-arm64'],
])('on %s without its build, names the command that installs it', (name, build) => {
  expect(problem(name)).toBe(
    `The engine for ${name} is not installed. Install it with: npm install @node-llama-cpp/${build}@3.22.1`,
  )
  expect(problem(name, { findBuild: (found) => (found === build ? 'build' : undefined) })).toBeUndefined()
})

test('names the script that adds the build in a clone without it', () => {
  expect(
    problem('darwin-arm64', {
      findBuild: (build) => (build === 'mac-arm64-metal' ? 'empty package' : undefined),
    }),
  ).toBe('This clone leaves out the engine for darwin-arm64. Add it with: npm run add-engine')
})

test('on musl, names an image with glibc, also if the build is installed', () => {
  for (const name of ['linux-x64', 'linux-arm64'])
    expect(problem(name, { glibc: undefined, findBuild: () => 'build' })).toBe(
      'There is no prebuilt engine for musl, as in Alpine Linux. Use an image with glibc, such as node:22-slim.',
    )
})

test('names a glibc that is too old, and the oldest that works', () => {
  expect(problem('linux-x64', { glibc: '2.31', findBuild: () => 'build' })).toBe(
    'The prebuilt engine for linux-x64 needs glibc 2.34 or later, but this system has 2.31. Use a newer system or image, such as node:22-slim.',
  )
  expect(problem('linux-x64', { glibc: '2.34', findBuild: () => 'build' })).toBeUndefined()
  expect(problem('linux-x64', { glibc: '3.0', findBuild: () => 'build' })).toBeUndefined()
})

test('says that an unknown platform has no build, and where models can run instead', () => {
  expect(problem('sunos-x64')).toBe(
    'There is no prebuilt engine for sunos-x64. Let the models run on another machine, with upstreamEngine() of @modelmount/core/upstream.',
  )
})

test('passes on why the system does not load a build', () => {
  expect(describeBrokenBuild('linux-x64', 'libstdc++.so.6: cannot open shared object file')).toBe(
    'The engine for linux-x64 is installed, but its native code does not load: libstdc++.so.6: cannot open shared object file. Install the system libraries that it needs, or use an image that has them, such as node:22-slim.',
  )
})

test('with a build of this machine that does not load, says so instead of that none is installed', () => {
  const folder = emptyFolder()
  const library = join(folder, 'node_modules/node-llama-cpp')
  mkdirSync(join(library, 'llama/localBuilds/linux-x64'), { recursive: true })
  writeFileSync(join(library, 'package.json'), '{"name":"node-llama-cpp","main":"index.js"}')
  writeFileSync(join(library, 'index.js'), '')
  const processFile = join(folder, 'main.js')

  expect(findEngineProblem(processFile)).toBeUndefined()
  expect(describeMissingBuild('3.22.1', processFile)).toBe(
    'The engine that was built on this machine does not load. Build it again with: npx node-llama-cpp source download',
  )
})

test('finds no problem on this machine, and claims none for a file that may load the library from elsewhere', () => {
  expect(findEngineProblem(import.meta.filename)).toBeUndefined()
  expect(findEngineProblem('/nowhere/main.js')).toBeUndefined()
})

test.runIf(process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch))(
  'the installed build needs exactly the glibc that the message names',
  () => {
    const name = `linux-${process.arch}`
    const main = createRequire(import.meta.url).resolve(`@node-llama-cpp/${name}`)
    const bins = join(dirname(main), '..', 'bins', name)
    const code = readdirSync(bins).filter((file) => /\.(?:so|node)/.test(file))
    const versions = code.flatMap((file) =>
      Array.from(readFileSync(join(bins, file), 'latin1').matchAll(/GLIBC_2\.(\d+)\b/g), ([, minor]) =>
        Number(minor),
      ),
    )

    expect(Math.max(...versions)).toBe(34)
  },
)
