import { expect, test } from 'vitest'
import { describeMissingBuild } from './missing-engine.ts'

const machine = { name: 'darwin-arm64', isMusl: false, isStubbed: () => false }

test('names the command that installs a missing build', () => {
  expect(describeMissingBuild('3.22.1', machine)).toBe(
    'The engine for darwin-arm64 is not installed. Install it with: npm install @node-llama-cpp/mac-arm64-metal@3.22.1',
  )
})

test('names the script that adds the build in a clone without it', () => {
  expect(
    describeMissingBuild('3.22.1', { ...machine, isStubbed: (build) => build === 'mac-arm64-metal' }),
  ).toBe('This clone leaves out the engine for darwin-arm64. Add it with: npm run add-engine')
})

test('says that musl has no build', () => {
  expect(describeMissingBuild('3.22.1', { ...machine, name: 'linux-x64', isMusl: true })).toContain('musl')
})

test('says that an unknown platform has no build', () => {
  expect(describeMissingBuild('3.22.1', { ...machine, name: 'sunos-x64' })).toBe(
    'There is no prebuilt engine for sunos-x64.',
  )
})

test('names the platform of this machine', () => {
  expect(describeMissingBuild('3.22.1')).toContain(`${process.platform}-${process.arch}`)
})
