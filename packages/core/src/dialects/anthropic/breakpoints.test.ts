import { expect, test } from 'vitest'
import type { ChatInput, Part } from '../../engine/request.ts'
import { parse } from '../parse.ts'
import { formatIssue } from './errors.ts'
import { CountTokensRequest, MessagesRequest } from './schema.ts'
import { toGenerateRequest } from './translate.ts'

const short = { cache_control: { type: 'ephemeral' } }
const long = { cache_control: { type: 'ephemeral', ttl: '1h' } }
const text = (text: string, more: object = {}): object => ({ type: 'text', text, ...more })
const user = (...content: readonly object[]): object => ({ role: 'user', content })
const assistant = (...content: readonly object[]): object => ({ role: 'assistant', content })
const tool = (name: string, more: object = {}): object => ({
  name,
  input_schema: { type: 'object' },
  ...more,
})
const call = { type: 'tool_use', id: 'a', name: 'now', input: {} }
const result = { type: 'tool_result', tool_use_id: 'a', content: 'Noon.' }

const read = (fields: object): MessagesRequest =>
  parse(
    MessagesRequest,
    { model: 'tiny', max_tokens: 5, messages: [user(text('Hi'))], ...fields },
    formatIssue,
  )

/** Lists the tools and the parts of a translated body. Breakpoints appear as `|5m` or `|1h`. */
function prompt(fields: object): string[] {
  const { tools = [], messages } = toGenerateRequest(read(fields)).input as ChatInput
  const mark = ({ cache }: { readonly cache?: string }): string => (cache ? `|${cache}` : '')
  const said = (part: Part): string => {
    if (part.type === 'tool-call') return `call ${part.name}`
    if (part.type === 'image') return `image of ${part.param}`
    return part.type === 'tool-result' ? `result ${part.content.map(said).join('+')}` : part.text
  }
  return [
    ...tools.map((tool) => `${tool.name}${mark(tool)}`),
    ...messages.map(
      ({ role, content }) => `${role}: ${content.map((part) => said(part) + mark(part)).join(', ')}`,
    ),
  ]
}

test('a breakpoint follows its block, and lasts five minutes by default', () => {
  const fields = {
    tools: [tool('now'), tool('later', long)],
    system: [text('Be brief.', long)],
    messages: [user(text('a', short), text('b')), assistant(text('c', short))],
  }

  expect(prompt(fields)).toEqual([
    'now',
    'later|1h',
    'system: Be brief.|1h',
    'user: a|5m, b',
    'assistant: c|5m',
  ])
})

test.each([null, undefined])('`cache_control` of %j means no breakpoint', (none) => {
  const fields = {
    cache_control: none,
    tools: [tool('now', { cache_control: none })],
    messages: [user(text('', { cache_control: none }), text('a', { cache_control: none }))],
  }

  expect(prompt(fields)).toEqual(['now', 'user: a'])
  expect(
    prompt({ messages: [user(text('a', { cache_control: { type: 'ephemeral', ttl: none } }))] }),
  ).toEqual(['user: a|5m'])
})

const source = { type: 'text', media_type: 'text/plain', data: 'Rain.' }
test.each([
  ['a call', [assistant({ ...call, ...short }), user(result)], 'call now|5m'],
  ['a result', [assistant(call), user({ ...result, ...short })], 'result Noon.|5m'],
  ['a document', [user({ type: 'document', source, ...short })], '<document>\nRain.\n</document>\n\n|5m'],
  [
    'a search result',
    [user({ type: 'search_result', source: 'a.b', title: 'A', content: [text('Sun.')], ...short })],
    '<search_result>\nA\n\na.b\n\nSun.\n</search_result>\n\n|5m',
  ],
  [
    'a hosted tool call of another server',
    [assistant({ type: 'server_tool_use', name: 'web_search', input: { q: 1 }, ...short })],
    '\nweb_search: {"q":1}\n|5m',
  ],
])('%s can have a breakpoint', (_what, messages, expected) => {
  expect(prompt({ messages: [user(text('Hi')), assistant(text('Well.')), ...messages] }).join()).toContain(
    expected,
  )
})

test.each([
  ['a text', text('Noon.', short), 'Noon.'],
  [
    'an image',
    { type: 'image', source: { type: 'url' }, ...short },
    'image of messages[1].content[0].content[0].image',
  ],
  ['a document', { type: 'document', source, ...short }, '<document>\nRain.\n</document>\n\n'],
])('a breakpoint of %s within a result moves to the end of the result', (_what, block, said) => {
  const messages = [assistant(call), user({ ...result, content: [block, text('Or so.')] })]

  expect(prompt({ messages })[1]).toBe(`tool: result ${said}+Or so.|5m`)
})

test('the breakpoint of a result takes precedence over breakpoints within the result', () => {
  const messages = [assistant(call), user({ ...result, ...long, content: [text('Noon.', short)] })]

  expect(prompt({ messages })[1]).toBe('tool: result Noon.|1h')
})

test('a breakpoint within the source of a document is ignored', () => {
  const parts = { type: 'content', content: [text('a', short), text('b', short)] }

  expect(prompt({ messages: [user({ type: 'document', source: parts })] })).toEqual([
    'user: <document>\nab\n</document>\n\n',
  ])
})

test('the breakpoint of a skipped tool moves to the tool before it', () => {
  const search = { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' }

  expect(prompt({ tools: [tool('now'), { ...search, ...short }, tool('later')] }).slice(0, 2)).toEqual([
    'now|5m',
    'later',
  ])
  expect(prompt({ tools: [tool('now', long), { ...search, ...short }] })[0]).toBe('now|1h')
  expect(prompt({ tools: [{ ...search, ...short }, tool('now')] })[0]).toBe('now')
})

test('tools that the API defines can have breakpoints', () => {
  expect(prompt({ tools: [{ type: 'bash_20250124', name: 'bash', ...long }] })[0]).toBe('bash|1h')
})

test('a breakpoint on the billing marker is dropped with the marker', () => {
  const billing = text('x-anthropic-billing-header: cch=1a2b;', short)

  expect(prompt({ system: [billing, text('Be brief.')] })).toEqual(['system: Be brief.', 'user: Hi'])
})

test('a breakpoint moves with its block: results precede the rest of a message', () => {
  const messages = [assistant(call), user(text('So?', short), { ...result, ...short })]

  expect(prompt({ messages }).slice(1)).toEqual(['tool: result Noon.|5m', 'user: So?|5m'])
})

test.each([
  ['a text', { messages: [{ role: 'user', content: 'Hi' }] }, 'user: Hi|5m'],
  ['a block', { messages: [user(text('a'), text('b'))] }, 'user: ab|5m'],
  ['a result', { messages: [assistant(call), user(result)] }, 'tool: result Noon.|5m'],
  [
    'a block before an empty one and thoughts',
    { messages: [user(text('a')), assistant({ type: 'thinking', thinking: 'Hm.' }), user(text(''))] },
    'user: a|5m',
  ],
  ['the system', { system: 'Be brief.', messages: [user(text(''))] }, 'system: Be brief.|5m'],
  ['a tool', { tools: [tool('now'), tool('later')], messages: [user(text(''))] }, 'later|5m'],
  ['nothing', { messages: [user(text(''))] }, undefined],
])('the request-level breakpoint follows the last block that can have one: %s', (_what, fields, place) => {
  const marked = prompt({ ...short, ...fields }).filter((line) => line.includes('|'))

  expect(marked).toEqual(place === undefined ? [] : [place])
})

test('the request-level breakpoint may be equal to that of the last block', () => {
  const four = [1, 2, 3, 4].map((n) => text(`${n}`, short))

  expect(prompt({ ...short, messages: [user(...four)] })).toEqual(['user: 1|5m, 2|5m, 3|5m, 4|5m'])
})

test.each<[what: string, fields: object, message: string]>([
  [
    'five of them',
    {
      tools: [tool('now', short)],
      system: [text('a', short)],
      messages: [user(text('b', short), text('c', short)), assistant(text('d', short))],
    },
    'A maximum of 4 blocks with cache_control may be provided. Found 5.',
  ],
  [
    'four and that of the body',
    { ...short, messages: [user(...[1, 2, 3, 4].map((n) => text(`${n}`, short)), text('5'))] },
    'A maximum of 4 blocks with cache_control may be provided. Found 5.',
  ],
  [
    'an hour behind five minutes',
    { messages: [user(text('a', short), text('b'), text('c', long))] },
    "messages.0.content.2.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
  ],
  [
    'an hour in the system behind five minutes in the tools',
    { tools: [tool('now', short)], system: [text('a', long)] },
    "system.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
  ],
  [
    'an hour for the body behind five minutes',
    { ...long, system: [text('a', short)] },
    "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
  ],
  [
    'the body and its last block with two lifetimes',
    { ...long, messages: [user(text('a', short))] },
    "cache_control.ttl: the last block already has a cache_control block with ttl='5m', which differs from ttl='1h'",
  ],
  [
    'one on an empty text',
    { messages: [user(text('a'), text('', short))] },
    'messages.0.content.1.text: cache_control cannot be set for empty text blocks',
  ],
  [
    'one on an empty text of the system',
    { system: [text('', long)] },
    'system.0.text: cache_control cannot be set for empty text blocks',
  ],
  [
    'one on thoughts',
    { messages: [assistant({ type: 'thinking', thinking: 'Hm.', ...short })] },
    'messages.0.content.0.cache_control: Extra inputs are not permitted',
  ],
  [
    'one on encrypted thoughts',
    { messages: [assistant({ type: 'redacted_thinking', data: 'AAAA', ...short })] },
    'messages.0.content.0.cache_control: Extra inputs are not permitted',
  ],
  [
    'another type',
    { system: [text('a', { cache_control: { type: 'persistent' } })] },
    "system.0.cache_control.type: Input should be 'ephemeral'",
  ],
  ['no type', { tools: [tool('now', { cache_control: {} })] }, 'tools.0.cache_control.type: Field required'],
  [
    'another ttl',
    { messages: [assistant(call), user({ ...result, cache_control: { type: 'ephemeral', ttl: '10m' } })] },
    "messages.1.content.0.cache_control.ttl: Input should be '5m' or '1h'",
  ],
  [
    'a number as ttl',
    { cache_control: { type: 'ephemeral', ttl: 300 } },
    "cache_control.ttl: Input should be '5m' or '1h'",
  ],
  ['a text', { cache_control: 'ephemeral' }, 'cache_control: Input should be a valid dictionary'],
  [
    'a wrong one on a tool that is left out',
    { tools: [{ type: 'tool_search_tool_regex', cache_control: { type: 'x' } }] },
    "tools.0.cache_control.type: Input should be 'ephemeral'",
  ],
])('%s is rejected, even for token counting', (_what, fields, message) => {
  const refused = expect.objectContaining({ code: 'invalid_request', message })

  expect(() => read(fields)).toThrow(refused)
  expect(() =>
    parse(CountTokensRequest, { model: 'tiny', messages: [user(text('Hi'))], ...fields }, formatIssue),
  ).toThrow(refused)
})

test('a ttl of 1h may precede a ttl of 5m, and four breakpoints are allowed', () => {
  const fields = {
    ...short,
    tools: [tool('now', long)],
    system: [text('a', long)],
    messages: [user(text('b', short), text('c'))],
  }

  expect(prompt(fields)).toEqual(['now|1h', 'system: a|1h', 'user: b|5m, c|5m'])
})
