import { expect, test } from 'vitest'
import { mergeTurns } from './merge-turns.ts'
import type { Message, Part } from './request.ts'

const text = (text: string): Part => ({ type: 'text', text })
const call = (id: string): Part => ({ type: 'tool-call', id, name: 'now', arguments: '{}' })
const turn = (role: Message['role'], ...content: Part[]): Message => ({ role, content })

test('merges turns of one role with a blank line between their texts', () => {
  const turns = [turn('user', text('a'), text('b')), turn('user', text('c')), turn('assistant', text('d'))]

  expect(mergeTurns(turns)).toEqual([turn('user', text('ab\n\nc')), turn('assistant', text('d'))])
})

test('keeps tool calls between texts', () => {
  const turns = [turn('assistant', text('a'), call('1')), turn('assistant', call('2'), text('b'))]

  expect(mergeTurns(turns)).toEqual([turn('assistant', text('a'), call('1'), call('2'), text('\n\nb'))])
})

test('drops empty texts and empty turns, but keeps an empty turn of the user', () => {
  expect(mergeTurns([turn('user', text('')), turn('user', text('a')), turn('assistant')])).toEqual([
    turn('user', text('a')),
  ])
  expect(mergeTurns([turn('user')])).toEqual([turn('user', text(''))])
})

test('a breakpoint ends its part, and the joined text stays the same', () => {
  const kept = (said: string): Part => ({ type: 'text', text: said, cache: '5m' })
  const turns = (a: Part, c: Part): readonly Message[] => [
    turn('user', text('x'), a, text('b')),
    turn('user', c, text('d')),
  ]
  const joined = ([one]: readonly Message[]): string | undefined =>
    one?.content.map((part) => ('text' in part ? part.text : '')).join('')

  const merged = mergeTurns(turns(kept('a'), kept('c')))

  expect(merged).toEqual([turn('user', kept('xa'), kept('b\n\nc'), text('d'))])
  expect(joined(merged)).toBe(joined(mergeTurns(turns(text('a'), text('c')))))
})

test('a text after a breakpoint at the end of a turn starts with the blank line', () => {
  const kept: Part = { type: 'text', text: 'a', cache: '1h' }

  expect(mergeTurns([turn('user', kept)])[0]?.content).toEqual([kept])
  expect(mergeTurns([turn('user', kept), turn('user', text('b'))])[0]?.content).toEqual([kept, text('\n\nb')])
})
