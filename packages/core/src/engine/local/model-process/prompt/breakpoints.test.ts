import type { Token } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { budgetOf } from '../../../../../../../test/support/budgets.ts'
import { invalidRequest } from '../../../../errors.ts'
import { chatMl, parseChatTemplate } from '../../../../template/jinja.ts'
import type { ChatInput, GenerateRequest, Message, Part } from '../../../request.ts'
import { callableTools } from '../../../request-input.ts'
import type { RuntimeModel } from '../model.ts'
import type { RunContext } from '../run-context.ts'
import { findBreakpoints } from './breakpoints.ts'
import { tokenizePrompt } from './prompt.ts'

const tokensOf = (text: string): Token[] => [...text].map((one) => (one.codePointAt(0) ?? 0) as Token)
const textOf = (tokens: readonly Token[]): string => String.fromCodePoint(...tokens)

/** A model whose tokens are characters. */
function workOf(source: string, tokenize = tokensOf): RunContext & { readonly renders: { count: number } } {
  const renders = { count: 0 }
  const signal = new AbortController().signal
  const template = { source, bosToken: '', eosToken: '' }
  const chat = parseChatTemplate(template)
  const model: Partial<RuntimeModel> = {
    contextSize: 10_000,
    template,
    bos: undefined,
    tokenize: async (text) => tokenize(text),
    detokenize: (tokens) => textOf(tokens),
  }
  const renderer: RunContext['renderer'] = {
    render: async ({ messages, options }) => {
      renders.count++
      try {
        return chat(messages, options)
      } catch (cause) {
        throw invalidRequest(String(cause))
      }
    },
  }
  return {
    model: model as RuntimeModel,
    renderer,
    renders,
    grammars: { build: async () => undefined },
    progress: { steps: 0 },
    tenant: '',
    weight: 1,
    background: false,
    signal,
    budget: budgetOf({ signal }),
  }
}

/** Text before each breakpoint, and its lifetime. */
async function before(work: RunContext, input: Omit<ChatInput, 'kind'>): Promise<readonly string[]> {
  const request: GenerateRequest = { model: 'm', input: { kind: 'chat', ...input } }
  expect(callableTools(request.input)).toEqual(input.tools ?? [])
  const prompt = await tokenizePrompt(request, work)
  const found = await findBreakpoints(request, prompt, work)
  return found.map(({ length, lifetime }) => `${textOf(prompt.slice(0, length))} (${lifetime})`)
}

const say = (text: string, cache?: '5m' | '1h'): Part => ({ type: 'text', text, ...(cache && { cache }) })
const system = (...content: Part[]): Message => ({ role: 'system', content })
const user = (...content: Part[]): Message => ({ role: 'user', content })
const assistant = (...content: Part[]): Message => ({ role: 'assistant', content })
const tool = (name: string, cache?: '5m' | '1h') => ({ name, parameters: {}, ...(cache && { cache }) })

const brackets = '{% for m in messages %}[{{ m.role[0] }}:{{ m.content | trim }}]{% endfor %}'
/** Template comment that makes a template look like one with markup for tool calls. */
const knowsCalls = '{# <tool_call> tool_calls #}'
const withTools = (where: 'front' | 'behind'): string => {
  const tools = '{% if tools %}<{% for t in tools %}{{ t.function.name }},{% endfor %}>{% endif %}'
  const head = "{% if messages[0].role == 'system' %}[s:{{ messages[0].content }}]{% endif %}"
  const rest = "{% for m in messages if m.role != 'system' %}[{{ m.role[0] }}:{{ m.content }}]{% endfor %}"
  return knowsCalls + (where === 'front' ? tools + head : head + tools) + rest
}

test('after a system text: the longest prefix that its conversations share', async () => {
  const messages = [system(say('Be brief.', '1h')), user(say('Hi'))]

  expect(await before(workOf(brackets), { messages })).toEqual(['[s:Be brief.][u: (1h)'])
})

test('after any other text: the end of the text, without the markup after it', async () => {
  const messages = [user(say('Hi', '5m')), assistant(say('Yes?', '5m')), user(say('No.', '5m'))]

  expect(await before(workOf(chatMl), { messages })).toEqual([
    '<|im_start|>user\nHi (5m)',
    '<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYes? (5m)',
    '<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYes?<|im_end|>\n<|im_start|>user\nNo. (5m)',
  ])
})

test('between the parts of a message', async () => {
  const messages = [system(say('One.', '1h'), say('Two.')), user(say('a', '5m'), say('b'))]

  expect(await before(workOf(brackets), { messages })).toEqual(['[s:One. (1h)', '[s:One.Two.][u:a (5m)'])
})

test('after a text that the template trims: the end of the trimmed text', async () => {
  expect(await before(workOf(brackets), { messages: [user(say('Hi \n ', '5m'))] })).toEqual(['[u:Hi (5m)'])
})

test('tools before the system message: their prefix ends at its text', async () => {
  const messages = [system(say('Be brief.', '5m')), user(say('Hi'))]
  const input = { tools: [tool('a'), tool('b', '1h')], messages }

  expect(await before(workOf(withTools('front')), input)).toEqual([
    '<a,b,>[s: (1h)',
    '<a,b,>[s:Be brief.][u: (5m)',
  ])
})

test('tools after the system message: their prefix includes that message', async () => {
  const messages = [system(say('Be brief.', '5m')), user(say('Hi'))]
  const input = { tools: [tool('a', '1h'), tool('b')], messages }

  expect(await before(workOf(withTools('behind')), input)).toEqual([
    '[s:Be brief.]<a, (1h)',
    '[s:Be brief.]<a,b,>[u: (5m)',
  ])
})

test('after a tool in the middle: the prefix up to the next tool', async () => {
  const input = { tools: [tool('a', '5m'), tool('b')], messages: [user(say('Hi'))] }

  expect(await before(workOf(withTools('front')), input)).toEqual(['<a, (5m)'])
})

test('after tool calls and results', async () => {
  const messages: Message[] = [
    user(say('Hi')),
    assistant({ type: 'tool-call', id: 'c', name: 'a', arguments: '{"x":1}', cache: '5m' }),
    { role: 'tool', content: [{ type: 'tool-result', id: 'c', content: [say('12')], cache: '5m' }] },
  ]
  const found = await before(workOf(brackets), { tools: [tool('a')], messages })

  expect(found.map((text) => text.slice(text.indexOf('[u:Hi]')))).toEqual([
    '[u:Hi][a:{"name":"a","arguments":{"x":1}}][u:The result of a:\n (5m)',
    '[u:Hi][a:{"name":"a","arguments":{"x":1}}][u:The result of a:\n12 (5m)',
  ])
})

test('at least one token comes after a breakpoint', async () => {
  expect(await before(workOf('{{ messages[0].content }}'), { messages: [user(say('Hello', '5m'))] })).toEqual(
    ['Hell (5m)'],
  )
})

test('two breakpoints at the same position get the longer lifetime', async () => {
  const messages = [user(say('Hi', '1h'), { type: 'reasoning', text: '', cache: '5m' })]

  expect(await before(workOf('{{ messages[0].content }}!'), { messages })).toEqual(['Hi (1h)'])
})

test('a breakpoint is left out where the template rejects the changed input', async () => {
  const source = "{% if messages[0].content != 'Hi' %}{{ raise_exception('No.') }}{% endif %}Hi!"

  expect(await before(workOf(source), { messages: [user(say('Hi', '5m'))] })).toEqual([])
})

test('a breakpoint inside a token moves to the start of the token', async () => {
  /** Adjacent letters are one token. */
  const words = (text: string): Token[] =>
    (text.match(/[a-z]+|./gsu) ?? []).map(
      (word) => (word.length > 1 ? 1_000 + word.length : (word.codePointAt(0) ?? 0)) as Token,
    )
  const work = workOf('{{ messages[0].content }}!', words)
  const request: GenerateRequest = {
    model: 'm',
    input: { kind: 'chat', messages: [user(say('a abc', '5m'), say('def'))] },
  }

  const prompt = await tokenizePrompt(request, work)

  expect(prompt).toHaveLength(4)
  expect(await findBreakpoints(request, prompt, work)).toEqual([{ length: 2, lifetime: '5m' }])
})

test('a text prompt has no breakpoints', async () => {
  const request: GenerateRequest = { model: 'm', input: { kind: 'text', prompt: ['Hi'] } }

  expect(await findBreakpoints(request, tokensOf('Hi'), workOf(chatMl))).toEqual([])
})

test('four breakpoints take two renders, with tools and system texts too', async () => {
  const messages = [
    system(say('Be brief.', '1h')),
    user(say('Hi', '5m')),
    assistant(say('Yes?')),
    user(say('No.', '5m')),
  ]
  const work = workOf(withTools('behind'))

  expect(await before(work, { tools: [tool('a', '1h'), tool('b')], messages })).toEqual([
    '[s:Be brief.]<a, (1h)',
    '[s:Be brief.]<a,b,>[u: (1h)',
    '[s:Be brief.]<a,b,>[u:Hi (5m)',
    '[s:Be brief.]<a,b,>[u:Hi][a:Yes?][u:No. (5m)',
  ])
  expect(work.renders.count).toBe(2)
})
