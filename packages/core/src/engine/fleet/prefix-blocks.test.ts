import { expect, test } from 'vitest'
import type { ChatInput, GenerateRequest, Message } from '../request.ts'
import { hashPrompt } from './prefix-blocks.ts'

const say = (role: string, text: string): Message => ({ role, content: [{ type: 'text', text }] })
const chat = (messages: readonly Message[], others: Partial<ChatInput> = {}): GenerateRequest => ({
  model: 'small',
  input: { kind: 'chat', messages, ...others },
})
const hashesOf = (request: GenerateRequest, tenant?: string) =>
  hashPrompt(request, tenant).blocks.map(({ hash }) => hash)

const first = [say('system', 'Be brief.'), say('user', 'Hello')]
const next = [...first, say('assistant', 'Good day'), say('user', 'And now?')]

test('a further turn begins with the blocks of the turn before, and has its key', () => {
  const [before, after] = [hashPrompt(chat(first), 'ann'), hashPrompt(chat(next), 'ann')]

  expect(after.blocks.slice(0, 2).map(({ hash }) => hash)).toEqual(before.blocks.map(({ hash }) => hash))
  expect(after.blocks).toHaveLength(4)
  expect(after.key).toBe(before.key)
})

test('conversations with the same instructions have different keys', () => {
  const other = [say('system', 'Be brief.'), say('user', 'Good evening')]

  expect(hashesOf(chat(other))[0]).toBe(hashesOf(chat(first))[0])
  expect(hashPrompt(chat(other), undefined).key).not.toBe(hashPrompt(chat(first), undefined).key)
})

test('tenants, models and the order of messages share no block', () => {
  const all = [
    hashesOf(chat(first), 'ann'),
    hashesOf(chat(first), 'bob'),
    hashesOf(chat(first)),
    hashesOf({ ...chat(first), model: 'large' }),
    hashesOf(chat(first.toReversed())),
  ].flat()

  expect(new Set(all).size).toBe(all.length)
})

test('a breakpoint that moves does not change the blocks', () => {
  const marked = first.map(({ role, content }) => ({
    role,
    content: content.map((part) => ({ ...part, cache: '5m' as const })),
  }))

  expect(hashesOf(chat(marked))).toEqual(hashesOf(chat(first)))
})

test('tools are the first block', () => {
  const tools = [{ name: 'look', parameters: {} }]

  expect(hashesOf(chat(first, { tools }))).toHaveLength(3)
  expect(hashesOf(chat(first, { tools }))[0]).not.toBe(hashesOf(chat(first))[0])
})

test('a long text has a block per 2,048 characters, which stay the same while it grows, and so does its key', () => {
  const raw = (text: string): GenerateRequest => ({
    model: 'small',
    input: { kind: 'text', prompt: [text], template: false },
  })
  const [short, long] = [raw('x'.repeat(5_000)), raw('x'.repeat(9_000))]

  expect(hashesOf(short)).toHaveLength(3)
  expect(hashesOf(long).slice(0, 2)).toEqual(hashesOf(short).slice(0, 2))
  expect(hashPrompt(long, undefined).key).toBe(hashPrompt(short, undefined).key)
})

test('the tokens of the last block are those of the prompt', () => {
  const { blocks, tokens } = hashPrompt(chat(next), undefined)

  expect(blocks.at(-1)?.tokens).toBe(tokens)
  expect(blocks.map(({ tokens }) => tokens)).toEqual(blocks.map(({ tokens }) => tokens).sort((a, b) => a - b))
})

test('a huge prompt has at most 1,025 blocks, and an empty one none', () => {
  expect(hashesOf(chat([say('user', 'x'.repeat(5_000_000))]))).toHaveLength(1_025)
  expect(hashesOf({ model: 'small', input: { kind: 'text', prompt: [''] } })).toEqual([])
})
