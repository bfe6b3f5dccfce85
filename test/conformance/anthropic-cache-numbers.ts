/** Checks of cache usage for scripted and real engines. Each check has a new caller. */
import { randomUUID } from 'node:crypto'
import type Anthropic from '@anthropic-ai/sdk'
import type { Caller } from '@modelmount/core'
import { expect } from 'vitest'
import { ask, json, messageEventsOf, messageOf } from './calls.ts'
import type { AnthropicRequirementId } from './requirements.ts'

/** A server under test. */
export interface Site {
  readonly url: string
  /** Sets the caller of the next requests. */
  callAs(caller: Caller): void
}

export const ephemeral = { cache_control: { type: 'ephemeral' } }

/** A text of about 200 tokens of a small model, different for each name. */
export const notes = (name: string): string =>
  Array.from({ length: 12 }, (_, line) => `Note ${name} ${line}: see box ${line * 7}.`).join('\n')

export const kept = (text: string): object => ({ type: 'text', text, ...ephemeral })
export const user = (content: unknown) => ({ role: 'user', content })
export const assistant = (content: unknown) => ({ role: 'assistant', content })

/** A request body with these fields that asks for one token. */
const body = (fields: object): object => ({
  model: 'tiny',
  max_tokens: 1,
  messages: [user('Where is box 7?')],
  ...fields,
})

/** Sends a request with these fields and resolves with the usage of the response. */
export const usageOf = async ({ url }: Site, fields: object): Promise<Anthropic.Usage> =>
  (await messageOf(await ask(url, body(fields)))).usage

async function countOf({ url }: Site, fields: object): Promise<number> {
  const { max_tokens, ...prompt } = body(fields) as Readonly<Record<string, unknown>>
  const call = { method: 'POST', headers: json, body: JSON.stringify(prompt) }
  const response = await fetch(`${url}/v1/messages/count_tokens`, call)
  return ((await response.json()) as { readonly input_tokens: number }).input_tokens
}

export const readOf = ({ cache_read_input_tokens: read }: Anthropic.Usage): number => read ?? Number.NaN
export const writtenOf = ({ cache_creation_input_tokens: written }: Anthropic.Usage): number =>
  written ?? Number.NaN
export const sumOf = (usage: Anthropic.Usage): number => usage.input_tokens + readOf(usage) + writtenOf(usage)

const newCaller = (site: Site): Caller => {
  const caller = { id: randomUUID() }
  site.callAs(caller)
  return caller
}

export const numbers = {
  'anthropic:cache:accounting': async (site) => {
    newCaller(site)
    const fields = { system: [kept(notes('a'))] }

    const [first, second] = [await usageOf(site, fields), await usageOf(site, fields)]

    expect([readOf(first), writtenOf(second)]).toEqual([0, 0])
    expect(writtenOf(first)).toBeGreaterThan(0)
    expect(readOf(second)).toBe(writtenOf(first))
    expect(second.input_tokens).toBe(first.input_tokens)
    expect(first.input_tokens).toBeGreaterThan(0)
    expect([sumOf(first), sumOf(second)]).toEqual(Array(2).fill(await countOf(site, fields)))
    expect(first.cache_creation).toEqual({
      ephemeral_5m_input_tokens: writtenOf(first),
      ephemeral_1h_input_tokens: 0,
    })
  },

  'anthropic:cache:changes': async (site) => {
    newCaller(site)
    const tool = (description: string) => ({ name: 'now', description, input_schema: { type: 'object' } })
    const fields = (description: string) => ({ tools: [tool(description)], system: [kept(notes('b'))] })

    const first = await usageOf(site, fields('Says the time.'))
    const otherTool = await usageOf(site, fields('Tells the time.'))
    const otherQuestion = { ...fields('Says the time.'), messages: [user('Where is the last box?')] }
    const sameSystem = await usageOf(site, otherQuestion)

    expect(readOf(otherTool)).toBe(0)
    expect(writtenOf(otherTool)).toBeGreaterThan(0)
    expect([readOf(sameSystem), writtenOf(sameSystem)]).toEqual([writtenOf(first), 0])
    expect(sumOf(sameSystem)).toBe(await countOf(site, otherQuestion))
  },

  'anthropic:cache:other-choice': async (site) => {
    const tool = (name: string) => ({ name, description: notes(name), input_schema: { type: 'object' } })
    const tools = [tool('now'), { ...tool('later'), ...ephemeral }]
    const fields = { tools, system: [kept(notes('i'))] }
    for (const tool_choice of [
      { type: 'auto', disable_parallel_tool_use: true },
      { type: 'any' },
      { type: 'tool', name: 'now' },
    ]) {
      newCaller(site)
      const first = await usageOf(site, fields)

      expect(writtenOf(first)).toBeGreaterThan(0)
      expect(readOf(await usageOf(site, { ...fields, tool_choice }))).toBe(writtenOf(first))
    }
  },

  'anthropic:cache:tenants': async (site) => {
    const fields = { system: [kept(notes('c'))] }
    const { id } = newCaller(site)
    const own = await usageOf(site, fields)
    newCaller(site)
    const other = await usageOf(site, fields)
    site.callAs({ id: randomUUID(), tenant: id })
    const sibling = await usageOf(site, fields)

    expect(writtenOf(own)).toBeGreaterThan(0)
    expect([readOf(other), writtenOf(other)]).toEqual([0, writtenOf(own)])
    expect([readOf(sibling), writtenOf(sibling)]).toEqual([writtenOf(own), 0])
  },

  'anthropic:cache:without-breakpoint': async (site) => {
    newCaller(site)
    const fields = { system: notes('d') }

    expect(writtenOf(await usageOf(site, { system: [kept(notes('d'))] }))).toBeGreaterThan(0)
    for (const _ of [1, 2]) {
      const usage = await usageOf(site, fields)

      expect([readOf(usage), writtenOf(usage)]).toEqual([0, 0])
      expect(usage.input_tokens).toBe(await countOf(site, fields))
    }
  },

  'anthropic:cache:billing-block': async (site) => {
    newCaller(site)
    const fields = (cch: string) => ({
      system: [
        { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1; cch=${cch};` },
        kept(notes('e')),
      ],
    })

    const [first, second] = [await usageOf(site, fields('1a2b')), await usageOf(site, fields('3c4d'))]

    expect([readOf(second), writtenOf(second)]).toEqual([writtenOf(first), 0])
    expect(writtenOf(first)).toBeGreaterThan(0)
  },

  'anthropic:cache:growing-conversation': async (site) => {
    for (const mark of [{ ...ephemeral }, undefined]) {
      newCaller(site)
      const said: object[] = []
      let before = { read: -1, all: 0 }
      for (const turn of ['1', '2', '3']) {
        const question = mark ? user(notes(turn)) : user([kept(notes(turn))])
        const fields = { ...mark, system: notes('f'), messages: [...said, question] }
        const usage = await usageOf(site, fields)

        expect(readOf(usage)).toBeGreaterThan(before.read)
        expect(readOf(usage)).toBeLessThanOrEqual(before.all)
        expect(writtenOf(usage)).toBeGreaterThan(0)
        expect(sumOf(usage)).toBe(await countOf(site, fields))
        before = { read: readOf(usage), all: sumOf(usage) }
        said.push(user(notes(turn)), assistant('In the hall.'))
      }
    }
  },

  'anthropic:cache:streams': async (site) => {
    newCaller(site)
    const fields = { system: [kept(notes('g'))] }
    const streamed = async () => {
      const events = await messageEventsOf(await ask(site.url, { ...body(fields), stream: true }))
      const [start, delta] = [events[0], events.at(-2)]
      if (start?.type !== 'message_start' || delta?.type !== 'message_delta') throw new Error('no stream')
      return [start.message.usage, delta.usage] as const
    }

    const first = await streamed()
    const second = await streamed()
    const whole = await usageOf(site, fields)

    expect(readOf(whole)).toBeGreaterThan(0)
    expect(writtenOf(first[0])).toBe(readOf(whole))
    for (const usage of second)
      expect(usage).toMatchObject({
        input_tokens: whole.input_tokens,
        cache_read_input_tokens: readOf(whole),
        cache_creation_input_tokens: 0,
      })
    expect(first[1]).toMatchObject({
      input_tokens: whole.input_tokens,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: readOf(whole),
    })
  },

  'anthropic:cache:pre-warm': async (site) => {
    newCaller(site)
    const fields = { system: [kept(notes('h'))] }

    const message = await messageOf(await ask(site.url, { ...body(fields), max_tokens: 0 }))
    const next = await usageOf(site, fields)

    expect(message).toMatchObject({
      type: 'message',
      content: [],
      stop_reason: 'max_tokens',
      usage: { output_tokens: 0, cache_read_input_tokens: 0 },
    })
    expect(writtenOf(message.usage)).toBeGreaterThan(0)
    expect(readOf(next)).toBe(writtenOf(message.usage))
  },
} satisfies Partial<Record<AnthropicRequirementId, (site: Site) => Promise<void>>>
