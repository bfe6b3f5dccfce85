import { expect, test } from 'vitest'
import { describeMissingBuild } from './missing-engine.ts'

const machine = { name: 'darwin-arm64', isMusl: false, isStubbed: () => false }

test('a build that is not installed is named with its command', () => {
  expect(describeMissingBuild('3.22.1', machine)).toBe(
    'The engine for darwin-arm64 is not installed. Install it with: npm install @node-llama-cpp/mac-arm64-metal@3.22.1',
  )
})

test('in a clone that leaves it out, a script adds it', () => {
  expect(
    describeMissingBuild('3.22.1', { ...machine, isStubbed: (build) => build === 'mac-arm64-metal' }),
  ).toBe('This clone leaves out the engine for darwin-arm64. Add it with: npm run add-engine')
})

test('on musl there is none', () => {
  expect(describeMissingBuild('3.22.1', { ...machine, name: 'linux-x64', isMusl: true })).toContain('musl')
})

test('on an unknown machine there is none', () => {
  expect(describeMissingBuild('3.22.1', { ...machine, name: 'sunos-x64' })).toBe(
    'There is no prebuilt engine for sunos-x64.',
  )
})

test('this machine is looked at', () => {
  expect(describeMissingBuild('3.22.1')).toContain(`${process.platform}-${process.arch}`)
})
