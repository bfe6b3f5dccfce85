import { expect, test } from 'vitest'
import type { PromptUsage } from '../engine/events.ts'
import type { CacheLifetime, ChatInput, Message, Part, Tool } from '../engine/request.ts'
import { ScriptedCache } from './scripted-cache.ts'

const text = (text: string, cache?: CacheLifetime): Part => ({ type: 'text', text, ...(cache && { cache }) })
const said = (role: string, ...content: readonly Part[]): Message => ({ role, content })
const tool = (name: string, cache?: CacheLifetime): Tool => ({
  name,
  parameters: {},
  ...(cache && { cache }),
})

/** Creates a cache with its clock. `ask` returns token counts: `reads + 5m writes + 1h writes of all`. */
function cacheAt() {
  const clock = { ms: 1_000_000 }
  const cache = new ScriptedCache(() => clock.ms)
  const use = (input: Omit<ChatInput, 'kind'>, tenant = 'ann', model = 'tiny'): PromptUsage =>
    cache.use({ model, input: { kind: 'chat', ...input } }, tenant)
  const ask = (...input: Parameters<typeof use>): string => {
    const { inputTokens, cacheReadTokens, cacheWriteTokens } = use(...input)
    return `${cacheReadTokens} + ${cacheWriteTokens['5m']} + ${cacheWriteTokens['1h']} of ${inputTokens}`
  }
  return { clock, use, ask }
}
const minutes = (count: number): number => count * 60_000
const system = said('system', text('Be brief.', '5m'))
const hi = { messages: [system, said('user', text('Hi'))] }

test('a prompt reads the tokens that the previous prompt cached', () => {
  const { ask } = cacheAt()

  expect(ask(hi)).toBe('0 + 1 + 0 of 2')
  expect(ask({ messages: [system, said('user', text('Hey'))] })).toBe('1 + 0 + 0 of 2')
})

test('cache reads count as reused', () => {
  const { use } = cacheAt()

  expect(use(hi).reusedTokens).toBe(0)
  expect(use(hi).reusedTokens).toBe(1)
})

test('a prompt without breakpoints reads and writes nothing', () => {
  const { ask } = cacheAt()
  const plain = { messages: [said('system', text('Be brief.')), said('user', text('Hi'))] }

  ask(hi)

  expect(ask(plain)).toBe('0 + 0 + 0 of 2')
})

test('each tool counts as one token, and so does each message after the tools', () => {
  const { ask } = cacheAt()
  const tools = [tool('now'), tool('later', '5m')]

  expect(ask({ ...hi, tools })).toBe('0 + 3 + 0 of 4')
  expect(ask({ messages: [said('user', text('Hi'))], tools })).toBe('2 + 0 + 0 of 3')
  expect(ask({ ...hi, tools: [tool('later', '5m'), tool('now')] })).toBe('0 + 3 + 0 of 4')
})

test('a conversation that grows reads more each time', () => {
  const { ask } = cacheAt()
  const first = said('user', text('a'))
  const second = said('assistant', text('b'))

  expect(ask({ messages: [said('user', text('a', '5m'))] })).toBe('0 + 1 + 0 of 1')
  expect(ask({ messages: [first, second, said('user', text('c', '5m'))] })).toBe('1 + 2 + 0 of 3')
  expect(ask({ messages: [first, second, said('user', text('c'), text('d', '5m'))] })).toBe('3 + 0 + 0 of 3')
})

test('nothing after the last breakpoint is read', () => {
  const { ask } = cacheAt()
  const both = { messages: [system, said('user', text('Hi', '5m'))] }

  expect(ask(both)).toBe('0 + 2 + 0 of 2')
  expect(ask(hi)).toBe('1 + 0 + 0 of 2')
})

test('cache writes for one hour and for five minutes are counted separately', () => {
  const { ask, clock } = cacheAt()
  const input = { tools: [tool('now', '1h')], ...hi }

  expect(ask(input)).toBe('0 + 1 + 1 of 3')
  clock.ms += minutes(59)
  expect(ask(input)).toBe('1 + 1 + 0 of 3')
})

test('each hit renews the lifetime', () => {
  const { ask, clock } = cacheAt()

  ask(hi)
  for (const _ of [1, 2, 3]) {
    clock.ms += minutes(4)
    expect(ask(hi)).toBe('1 + 0 + 0 of 2')
  }
  clock.ms += minutes(5)
  expect(ask(hi)).toBe('0 + 1 + 0 of 2')
})

test('models and tenants have separate caches', () => {
  const { ask } = cacheAt()

  ask(hi)

  expect(ask(hi, 'ben')).toBe('0 + 1 + 0 of 2')
  expect(ask(hi, 'ann', 'large')).toBe('0 + 1 + 0 of 2')
  expect(ask(hi)).toBe('1 + 0 + 0 of 2')
})

test('adjacent texts match even if they are split differently, texts of another role do not', () => {
  const { ask } = cacheAt()

  ask({ messages: [said('user', text('a'), text('b', '5m'))] })

  expect(ask({ messages: [said('user', text('ab', '5m'))] })).toBe('1 + 0 + 0 of 1')
  expect(ask({ messages: [said('assistant', text('ab', '5m'))] })).toBe('0 + 1 + 0 of 1')
})
