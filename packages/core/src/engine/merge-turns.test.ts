import { expect, test } from 'vitest'
import { mergeTurns } from './merge-turns.ts'
import type { Message, Part } from './request.ts'

const text = (text: string): Part => ({ type: 'text', text })
const call = (id: string): Part => ({ type: 'tool-call', id, name: 'now', arguments: '{}' })
const turn = (role: Message['role'], ...content: Part[]): Message => ({ role, content })

test('turns of one role are one, with a blank line between their texts', () => {
  const turns = [turn('user', text('a'), text('b')), turn('user', text('c')), turn('assistant', text('d'))]

  expect(mergeTurns(turns)).toEqual([turn('user', text('ab\n\nc')), turn('assistant', text('d'))])
})

test('calls between texts stay between them', () => {
  const turns = [turn('assistant', text('a'), call('1')), turn('assistant', call('2'), text('b'))]

  expect(mergeTurns(turns)).toEqual([turn('assistant', text('a'), call('1'), call('2'), text('\n\nb'))])
})

test('what says nothing leaves no gap, and no turn but that of the user', () => {
  expect(mergeTurns([turn('user', text('')), turn('user', text('a')), turn('assistant')])).toEqual([
    turn('user', text('a')),
  ])
  expect(mergeTurns([turn('user')])).toEqual([turn('user', text(''))])
})
