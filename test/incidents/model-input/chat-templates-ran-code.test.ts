/** B-7: the chat template of a downloaded model ran code on the server, through objects of the host language. */
import { afterEach, expect, test } from 'vitest'
import { parseChatTemplate } from '../../../packages/core/src/template/jinja.ts'

const mark = Symbol.for('modelmount.incident')
const world = globalThis as unknown as Record<symbol, unknown>
const set = "globalThis[Symbol.for('modelmount.incident')] = true"

afterEach(() => {
  delete world[mark]
})

/** Ways to code: the first five are those of Python, the others lead to a constructor in JavaScript. */
const escapes = [
  "{{ ''.__class__.__mro__[1].__subclasses__() }}",
  "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
  "{{ self.__init__.__globals__.__builtins__.__import__('os').system('id') }}",
  "{% for x in ().__class__.__base__.__subclasses__() %}{{ x()._module.__builtins__['eval']('1') }}{% endfor %}",
  "{{ namespace.__init__.__globals__['os'].system('id') }}",
  `{{ ''.constructor.constructor("${set}")() }}`,
  `{{ messages.constructor.constructor("${set}")() }}`,
  `{{ range.constructor("${set}")() }}`,
  `{{ messages['__proto__']['constructor']['constructor']("${set}")() }}`,
  `{{ (messages | map(attribute='constructor') | list)[0].constructor("${set}")() }}`,
  `{% set f = raise_exception.constructor %}{{ f("${set}")() }}`,
  `{{ process.mainModule.require('child_process').execSync('id') }}`,
  `{% set ns = namespace(x=1) %}{% set ns.__proto__ = messages %}{{ ns.constructor.constructor("${set}")() }}`,
  `{% include '/etc/passwd' %}`,
  `{% import '/etc/passwd' as secrets %}{{ secrets }}`,
]

test.each(escapes)('%s reaches no code', (source) => {
  const render = (): string => {
    const chat = parseChatTemplate({ source, bosToken: '', eosToken: '' })
    return chat([{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }])
  }
  let prompt = ''
  try {
    prompt = render()
  } catch {
    // A rejected template is as good as an empty prompt.
  }

  expect(prompt).not.toMatch(/root|uid=|function|native code|object Object/)
  expect(world[mark]).toBeUndefined()
  expect(({} as Record<string, unknown>).constructor).toBe(Object)
})

test('a template cannot change the objects of the app', () => {
  const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hello' }] }]
  const variables = { list: [1], nested: { value: 1 } }
  const source = `{% set ns = namespace(a=nested) %}{% set ns.a.value = 2 %}{{ list.append(2) }}`

  try {
    parseChatTemplate({ source, bosToken: '', eosToken: '' })(messages, { variables })
  } catch {
    // Not every implementation of Jinja can assign here.
  }

  expect(variables).toEqual({ list: [1], nested: { value: 1 } })
})
