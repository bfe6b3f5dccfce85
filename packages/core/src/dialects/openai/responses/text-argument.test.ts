import { expect, test } from 'vitest'
import { TextArgument } from './text-argument.ts'

const texts = ['', 'Hello', 'a "b"\\\n\tc', 'é🦊 \u0000 </x>', '\ud800 lone', '{"input":"x"}']

const toEscape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

test.each(texts)('%j arrives in pieces that join to the text, however its JSON is cut', (text) => {
  const escaped = `{"input":"${text.split('').map(toEscape).join('')}"}`
  for (const json of [JSON.stringify({ input: text }), ` { "input" : ${JSON.stringify(text)} } `, escaped])
    for (const size of [1, 3, json.length]) {
      const argument = new TextArgument()
      let joined = ''
      for (let at = 0; at < json.length; at += size) joined += argument.push(json.slice(at, at + size))
      joined += argument.end()

      expect([joined, argument.text]).toEqual([text, text])
    }
})

test('of incomplete arguments, what has arrived is the text', () => {
  const argument = new TextArgument()

  expect([argument.push('{"input":"Hel\\'), argument.end(), argument.text]).toEqual(['Hel', '', 'Hel'])
})

test.each([
  ['plain text', 'plain text'],
  ['{"patch":"x"}', '{"patch":"x"}'],
  ['{"more":1,"input":"x"}', 'x'],
])('arguments of another form, %j, give the text %j', (json, text) => {
  const argument = new TextArgument()

  expect(argument.push(json) + argument.end()).toBe(text)
})
