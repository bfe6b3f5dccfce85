import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Message } from '../engine/request.ts'
import { parseChatTemplate, type RenderOptions } from './jinja.ts'

beforeEach(() => void vi.useFakeTimers({ now: new Date(2026, 0, 5, 12) }))
afterEach(() => void vi.useRealTimers())

const question: Message = { role: 'user', content: [{ type: 'text', text: 'Hi' }] }

const render = (source: string, options?: RenderOptions): string =>
  parseChatTemplate({ source, bosToken: '', eosToken: '' })([question], options)

test('a template receives the local date in both formats of llama.cpp', () => {
  expect(render('{{ date_string }}, {{ datetime }}')).toBe('05 Jan 2026, Jan 05 2026')
})

test('the variables of a request replace the date', () => {
  expect(render('{{ date_string }}', { variables: { date_string: '26 Jul 2024' } })).toBe('26 Jul 2024')
})

const emptyThought = '<think></think>'
const r1 = `{% if not enable_thinking %}${emptyThought}{% endif %}`

test.each([
  [undefined, ''],
  [true, ''],
  [false, emptyThought],
])('with reasoning %j, a template with a negated switch writes %j', (reasoning, expected) => {
  expect(render(r1, { reasoning })).toBe(expected)
})

test.each([
  ['opens a thought on demand', '{% if enable_thinking %}<think>{% endif %}', ''],
  [
    'sets its default with a filter',
    `{% set enable_thinking = enable_thinking | default(false) %}${r1}`,
    emptyThought,
  ],
  [
    'has a default in its condition',
    `{% if not enable_thinking | default(false) %}${emptyThought}{% endif %}`,
    emptyThought,
  ],
  [
    'sets an undefined variable',
    `{% if not thinking is defined %}{% set thinking = false %}{% endif %}{% if not thinking %}${emptyThought}{% endif %}`,
    emptyThought,
  ],
])('a template that %s keeps its default', (_, source, expected) => {
  expect(render(source)).toBe(expected)
})

test('the variables of a request turn off reasoning', () => {
  expect(render(r1, { variables: { enable_thinking: false } })).toBe(emptyThought)
})

test.each([
  ['thinking_mode', true, 'enabled'],
  ['thinking_mode', false, 'disabled'],
  ['thinking_budget', false, '0'],
  ['reasoning if reasoning is not undefined else "default"', false, 'false'],
])('%s is a switch with reasoning %j', (expression, reasoning, expected) => {
  expect(render(`{{ ${expression} }}`, { reasoning })).toBe(expected)
})

test('a template whose effort is no_think by default reasons with a high effort', () => {
  const source = "{{ reasoning_effort if reasoning_effort is defined else 'no_think' }}"

  expect(render(source)).toBe('no_think')
  expect(render(source, { reasoning: true })).toBe('high')
  expect(render(source, { reasoning: true, variables: { reasoning_effort: 'low' } })).toBe('low')
})

test('the reasoning effort is also the reasoning strength', () => {
  expect(render('{{ reasoning_strength }}', { variables: { reasoning_effort: 'low' } })).toBe('low')
})
