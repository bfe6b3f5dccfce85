import { expect, test } from 'vitest'
import type { Message } from '../engine/request.ts'
import { type ChatPrompt, type ChatTemplate, chatMl, parseChat } from './jinja.ts'

const message = (role: Message['role'], ...texts: string[]): Message => ({
  role,
  content: texts.map((text) => ({ type: 'text', text })),
})

const renderChat = (template: ChatTemplate, ...given: Parameters<ChatPrompt>): string =>
  parseChat(template)(...given)

const withChatMl = { source: chatMl, bosToken: '', eosToken: '' }

/** Llama 3's, shortened: it trims each message and closes it with a token of its own. */
const llama3 = {
  source:
    "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}{% endfor %}" +
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
  bosToken: '<|begin_of_text|>',
  eosToken: '<|eot_id|>',
}

test('a conversation ends with the opened turn of the assistant', () => {
  const prompt = renderChat(withChatMl, [message('system', 'Be brief.'), message('user', 'Hi')])

  expect(prompt).toBe(
    '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n',
  )
})

test('the parts of a message are joined without anything between', () => {
  const prompt = renderChat(withChatMl, [message('user', 'one ', 'two', '\nthree')])

  expect(prompt).toBe('<|im_start|>user\none two\nthree<|im_end|>\n<|im_start|>assistant\n')
})

test('a template gets the tokens of its model', () => {
  const source = '{{ bos_token }}[{{ messages[0].content }}]{{ eos_token }}'

  const prompt = renderChat({ source, bosToken: '<s>', eosToken: '</s>' }, [message('user', 'Hi')])

  expect(prompt).toBe('<s>[Hi]</s>')
})

test('a trailing assistant message is left open', () => {
  const prompt = renderChat(withChatMl, [message('user', 'A list.'), message('assistant', '1. Apples\n2.')])

  expect(prompt).toBe('<|im_start|>user\nA list.<|im_end|>\n<|im_start|>assistant\n1. Apples\n2.')
})

test('a trailing assistant message is left open by a template that trims', () => {
  const prompt = renderChat(llama3, [message('user', ' Hi '), message('assistant', '  {"answer":  ')])

  expect(prompt).toBe(
    '<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>' +
      '<|start_header_id|>assistant<|end_header_id|>\n\n{"answer":',
  )
})

test.each(['e', 'end', 'im_end', '|', '>'])(
  'a trailing assistant message %j is left open, though it is a part of what closes a turn',
  (text) => {
    const prompt = renderChat(withChatMl, [message('user', 'Hi'), message('assistant', text)])

    expect(prompt).toBe(`<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n${text}`)
  },
)

test('an empty assistant message is an opened turn', () => {
  const prompt = renderChat(withChatMl, [message('user', 'Hi'), message('assistant')])

  expect(prompt).toBe('<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n')
})

test('white space at the end of a trailing assistant message is left to the model', () => {
  const prompt = renderChat(withChatMl, [message('user', 'Hi'), message('assistant', 'Hello ')])

  expect(prompt).toBe('<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello')
})

test('only the last message is continued, even when an earlier one says the same', () => {
  const prompt = renderChat(withChatMl, [
    message('assistant', 'Yes'),
    message('user', 'Yes'),
    message('assistant', 'Yes'),
  ])

  expect(prompt).toBe(
    '<|im_start|>assistant\nYes<|im_end|>\n<|im_start|>user\nYes<|im_end|>\n<|im_start|>assistant\nYes',
  )
})

test('a template that leaves the last message out gives its whole prompt', () => {
  const source =
    "{% for message in messages %}{% if message.role == 'user' %}<{{ message.content }}>{% endif %}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"

  const prompt = renderChat({ source, bosToken: '', eosToken: '' }, [
    message('user', 'Hi'),
    message('assistant', 'Hello'),
  ])

  expect(prompt).toBe('<Hi>')
})

test.each([
  [true, 'thinks'],
  [false, 'does not'],
  [undefined, 'decides'],
])('a template is told whether to think: %j', (reasoning, expected) => {
  const source =
    "{% if enable_thinking is defined %}{{ 'thinks' if enable_thinking else 'does not' }}{% else %}decides{% endif %}"

  const prompt = renderChat({ source, bosToken: '', eosToken: '' }, [message('user', 'Hi')], reasoning)

  expect(prompt).toBe(expected)
})

test('thoughts are apart from what was said, and there only where there are some', () => {
  const source =
    '{% for message in messages %}{% if message.reasoning_content is defined %}({{ message.reasoning_content }}){% endif %}[{{ message.content }}]{% endfor %}'

  const prompt = renderChat({ source, bosToken: '', eosToken: '' }, [
    message('user', 'Hi'),
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'a ' },
        { type: 'text', text: 'Hel' },
        { type: 'reasoning', text: 'greeting' },
        { type: 'text', text: 'lo' },
      ],
    },
    message('user', 'Bye'),
  ])

  expect(prompt).toBe('[Hi](a greeting)[Hello][Bye]')
})

test('a template that knows nothing of thoughts leaves them out', () => {
  const prompt = renderChat(withChatMl, [
    { role: 'assistant', content: [{ type: 'reasoning', text: 'hm' }] },
    message('user', 'Hi'),
  ])

  expect(prompt).toBe(
    '<|im_start|>assistant\n<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n',
  )
})

test('what a template raises is thrown', () => {
  const source = "{{ raise_exception('System role not supported') }}"

  expect(() => renderChat({ source, bosToken: '', eosToken: '' }, [message('system', 'x')])).toThrow(
    'System role not supported',
  )
})

test('text that looks like a template is only text', () => {
  const prompt = renderChat(withChatMl, [message('user', '{{ bos_token }}{% raw %}')])

  expect(prompt).toBe('<|im_start|>user\n{{ bos_token }}{% raw %}<|im_end|>\n<|im_start|>assistant\n')
})

test('a template that was parsed once makes any number of prompts', () => {
  const prompt = parseChat(withChatMl)

  expect(prompt([message('user', 'Hi')])).toBe('<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n')
  expect(prompt([message('user', 'Hi')])).toBe(prompt([message('user', 'Hi')]))
  expect(prompt([message('assistant', 'Well')])).toBe('<|im_start|>assistant\nWell')
})
