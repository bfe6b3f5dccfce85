import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { NativeTemplate } from './native-template.ts'

function markFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'template-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'mark')
}

test('while a template is filled its mark is there, and not behind it', () => {
  const mark = markFile()
  const template = new NativeTemplate((variables) => `${JSON.stringify(variables)} ${existsSync(mark)}`, mark)

  expect(template.fill({ a: 1 })).toBe('{"a":1} true')
  expect(existsSync(mark)).toBe(false)
})

test('what a template raises is thrown, and is no reason not to fill it again', () => {
  const mark = markFile()
  const raising = new NativeTemplate(() => {
    throw new Error('no')
  }, mark)

  for (const _ of [1, 2]) expect(() => raising.fill({})).toThrow('no')
})

test('one that has not come back is not filled again, for a while', () => {
  const mark = markFile()
  const template = new NativeTemplate(() => 'filled', mark)
  writeFileSync(mark, '')

  expect(() => template.fill({})).toThrow(
    expect.objectContaining({ code: 'upstream', message: expect.stringContaining('chat template') }),
  )

  utimesSync(mark, 0, 0)
  expect(template.fill({})).toBe('filled')
})
