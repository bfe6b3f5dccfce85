import { expect, test } from 'vitest'
import type { Message, Tool } from '../engine/request.ts'
import { parseGoPrompt } from './go-prompt.ts'
import { parseGoTemplate } from './go-template/index.ts'
import { type ExpectedOutput, hasControlTokens, parseOutput } from './output.ts'
import type { OutputPart } from './output-part.ts'
import { detectFamily } from './tool-calls/detect.ts'

const toMessage = (role: string, text: string): Message => ({ role, content: [{ type: 'text', text }] })
const tools: readonly Tool[] = [{ name: 'f', description: 'Does it.', parameters: { type: 'object' } }]
const chat = '{{ range .Messages }}[{{ .Role }}] {{ .Content }} {{ end }}[assistant]'

/** Parses an answer one character at a time, with the tags that occur in the template. */
function read(source: string, answer: string, expected: Partial<ExpectedOutput> = {}): readonly OutputPart[] {
  const templateFeatures = parseGoTemplate(source).features
  const parser = parseOutput({
    template: source,
    family: detectFamily(source),
    templateFeatures,
    prompt: '',
    reasoning: true,
    tools,
    ...expected,
  })
  const pieces = [...[...answer].flatMap((piece) => parser.push(piece)), ...parser.flush()]
  const whole: OutputPart[] = []
  for (const piece of pieces) {
    const last = whole.at(-1)
    if ('text' in piece && last?.type === piece.type)
      whole.splice(-1, 1, { type: piece.type, text: last.text + piece.text })
    else if (piece.type === 'tool-arguments' && last?.type === 'tool-arguments')
      whole.splice(-1, 1, { ...last, json: last.json + piece.json })
    else whole.push(piece)
  }
  return whole
}

test('an open message ends with its text, without the template’s closing tokens', () => {
  const { renderChat: prompt } = parseGoPrompt(chat, {})

  expect(prompt([toMessage('user', 'Hi'), toMessage('assistant', 'Hel')])).toBe('[user] Hi [assistant] Hel')
  expect(prompt([toMessage('user', 'Hi')])).toBe('[user] Hi [assistant]')
})

test('special tokens are neutralised in user messages but not in system messages', () => {
  const { renderChat: prompt, renderInfill } = parseGoPrompt(
    '{{ .Prompt }}{{ .Suffix }}{{ range .Messages }}{{ .Content }}{{ end }}',
    {
      specialTokens: ['<end>'],
    },
  )

  expect(prompt([toMessage('system', '<end>'), toMessage('user', '<end>')])).toBe(
    '<no value><no value><end><\u200Bend>',
  )
  expect(renderInfill({ prefix: '<end>', suffix: 'x' })).toBe('<\u200Bend>x')
})

test('calls and results are template fields if the template lists tools, and text otherwise', () => {
  const messages: readonly Message[] = [
    toMessage('user', 'Go'),
    { role: 'assistant', content: [{ type: 'tool-call', id: 'a', name: 'f', arguments: '{"b":1,"a":"<"}' }] },
    { role: 'tool', content: [{ type: 'tool-result', id: 'a', content: [{ type: 'text', text: 'done' }] }] },
  ]
  const knowing =
    '{{ len .Tools }}{{ range .Messages }}[{{ .Role }} {{ .Content }}{{ range .ToolCalls }}{{ .Function.Name }}{{ .Function.Arguments }}{{ end }}{{ .ToolName }}]{{ end }}'

  expect(parseGoPrompt(knowing, {}).renderChat(messages, { tools })).toBe(
    '1[user Go][assistant f{"a":"\\u003c","b":1}][tool donef]',
  )
  const rendered = parseGoPrompt(chat, {}).renderChat(messages, { tools })
  expect(rendered).toContain('[system] You can call tools.')
  expect(rendered).toContain('The result of f:\ndone')
})

test('a template receives Think and ThinkLevel', () => {
  const { renderChat: prompt } = parseGoPrompt(
    '{{ .Think }} {{ .ThinkLevel }}{{ range .Messages }}{{ end }}',
    {},
  )

  expect(prompt([toMessage('user', 'Hi')], { reasoning: true })).toBe('true medium')
  expect(
    prompt([toMessage('user', 'Hi')], { reasoning: true, variables: { reasoning_effort: 'high' } }),
  ).toBe('true high')
  expect(prompt([toMessage('user', 'Hi')])).toBe('false ')
})

const own =
  '{{ range .Messages }}{{ if .Thinking }}<musing>{{ .Thinking }}</musing>{{ end }}{{ range .ToolCalls }}<do>{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}</do>{{ end }}{{ end }}{{ .Tools }}'

test('reasoning and calls are parsed between the tags that occur in a template', () => {
  expect(read(own, '<musing>Hm.</musing>Well. <do>{"name": "f", "arguments": {"a": 1}}</do>')).toEqual([
    { type: 'reasoning', text: 'Hm.' },
    { type: 'text', text: 'Well.' },
    { type: 'tool-call', index: 0, name: 'f' },
    { type: 'tool-arguments', index: 0, json: '{"a": 1}' },
  ])
})

test('text between call tags stays text if it is not a call', () => {
  expect(read(own, 'Say <do>{"name": "g", "arguments": {}}</do>')).toEqual([
    { type: 'text', text: 'Say <do>{"name": "g", "arguments": {}}</do>' },
  ])
})

test('reasoning is parsed if the prompt contains the opening tag', () => {
  expect(read(own, 'Hm.</musing>Well.', { prompt: 'assistant\n<musing>\n' })).toEqual([
    { type: 'reasoning', text: 'Hm.' },
    { type: 'text', text: 'Well.' },
  ])
})

test('a template of a known family uses the parser of that family', () => {
  const qwen =
    '{{ range .Messages }}{{ range .ToolCalls }}<tool_call>\n{"name": "{{ .Function.Name }}"}\n</tool_call>{{ end }}{{ end }}{{ .Tools }}'

  expect(
    read(qwen, '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>').map(({ type }) => type),
  ).toEqual(['tool-call', 'tool-arguments'])
})

test('reasoning tags other than the common tags require control tokens', () => {
  const expected = { template: own, family: detectFamily(own), prompt: '', reasoning: true, tools: [] }

  expect(hasControlTokens(expected)).toBe(false)
  expect(hasControlTokens({ ...expected, templateFeatures: parseGoTemplate(own).features })).toBe(true)
})
