import { expect, test } from 'vitest'
import { type Entry, MessageReader } from './message-reader.ts'

const read = (...lines: readonly string[]): readonly (Entry | undefined)[] => {
  const reader = new MessageReader()
  return lines.map((line) => reader.take(line))
}
const message = (text: string): Entry => ({ kind: 'message', text })
const command = (text: string): Entry => ({ kind: 'command', text })

test('a line is a message, and a line with a slash a command', () => {
  expect(read('Hello', '/bye', '', '  ')).toEqual([message('Hello'), command('/bye'), undefined, undefined])
})

test('triple quotes join lines, also empty ones and those with a slash', () => {
  expect(read('"""one', '', '/bye', 'four"""', 'next')).toEqual([
    undefined,
    undefined,
    undefined,
    message('one\n\n/bye\nfour'),
    message('next'),
  ])
})

test('triple quotes may stand in one line, and in separate lines', () => {
  expect(read('"""/bye"""')).toEqual([message('/bye')])
  expect(read('"""', 'a', '"""')).toEqual([undefined, undefined, message('\na\n')])
})

test('a system message may also have several lines', () => {
  expect(read('/set system """You are', 'Bob."""')).toEqual([undefined, command('/set system You are\nBob.')])
  expect(read('/set system "Bob"')).toEqual([command('/set system "Bob"')])
})

test('discards an open message', () => {
  const reader = new MessageReader()
  reader.take('"""one')

  expect(reader.isOpen).toBe(true)
  reader.drop()
  expect([reader.isOpen, reader.take('two')]).toEqual([false, message('two')])
})
