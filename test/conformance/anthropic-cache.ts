/** The prompt cache of the Anthropic API, with a scripted engine and a clock that the checks set. */
import type { Caller } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import {
  assistant,
  ephemeral,
  kept,
  numbers,
  readOf,
  type Site,
  sumOf,
  usageOf,
  user,
  writtenOf,
} from './anthropic-cache-numbers.ts'
import { ask, expectAnthropicError, greeting, json, messageOf, textOf } from './calls.ts'
import type { AnthropicRequirementId } from './requirements.ts'
import type { Check, Serve } from './suite.ts'

const minutes = (count: number): number => count * 60_000
const forAnHour = { cache_control: { type: 'ephemeral', ttl: '1h' } }
const text = (text: string, more: object = {}): object => ({ type: 'text', text, ...more })
const tool = (name: string, more: object = {}): object => ({
  name,
  input_schema: { type: 'object' },
  ...more,
})
const used = (id: string, more: object = {}): object => ({
  type: 'tool_use',
  id,
  name: 'now',
  input: {},
  ...more,
})
const result = (id: string, more: object = {}): object => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'Noon.',
  ...more,
})

/** Serves the routes with an empty cache and a stopped clock. */
async function siteOf(serve: Serve) {
  const clock = { ms: 0 }
  let caller: Caller = { id: 'ada' }
  const engine = scriptedEngine('Hello there.', { now: () => clock.ms })
  const url = await serve(engine, { caller: () => caller })
  const callAs = (next: Caller): void => {
    caller = next
  }
  return { clock, engine, url, callAs }
}

/** Sends the requests in order, and resolves with the cache reads and writes of each. */
async function numbersOf(
  site: Site,
  ...all: readonly object[]
): Promise<readonly (readonly [number, number])[]> {
  const numbers: [number, number][] = []
  for (const fields of all) {
    const usage = await usageOf(site, fields)
    numbers.push([readOf(usage), writtenOf(usage)])
  }
  return numbers
}

async function expectRefused(serve: Serve, fields: object, message: unknown): Promise<void> {
  const { url, engine } = await siteOf(serve)

  for (const path of ['/v1/messages', '/v1/messages/count_tokens'])
    await expectAnthropicError(
      await fetch(url + path, {
        method: 'POST',
        headers: json,
        body: JSON.stringify({ ...greeting, ...fields }),
      }),
      400,
      'invalid_request_error',
      message,
    )
  expect(engine.requests).toEqual([])
}

const byScript = Object.fromEntries(
  Object.entries(numbers).map(([id, check]): [string, Check] => [
    id,
    async (serve) => check(await siteOf(serve)),
  ]),
) as Record<keyof typeof numbers, Check>

export const caching = {
  ...byScript,

  'anthropic:cache:markers': async (serve) => {
    const source = { type: 'text', media_type: 'text/plain', data: 'Rain.' }
    const found = { type: 'search_result', source: 'a.b', title: 'A', content: [text('Sun.')] }
    const asked = [user('Hi'), assistant([used('a')])]
    const image = { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } }
    const bodies = (mark: object): readonly object[] => [
      { tools: [tool('now', mark)] },
      { tools: [{ type: 'bash_20250124', name: 'bash', ...mark }] },
      { system: [text('Be brief.', mark)] },
      { messages: [user([text('Hi', mark)])] },
      { messages: [{ role: 'system', content: [text('Be brief.', mark)] }, user('Hi')] },
      { messages: [user([{ type: 'document', source, ...mark }])] },
      { messages: [user([{ ...found, ...mark }])] },
      { messages: [user('Hi'), assistant([used('a', mark)]), user([result('a')])] },
      { messages: [...asked, user([result('a', mark)])] },
      { messages: [...asked, user([result('a', { content: [text('Noon.', mark)] })])] },
      { messages: [...asked, user([result('a', { content: [{ ...image, ...mark }] })])] },
      mark,
    ]
    for (const ttl of [undefined, null, '5m', '1h'])
      for (const fields of bodies({ cache_control: { type: 'ephemeral', ttl } })) {
        const { cache_creation: written } = await usageOf(await siteOf(serve), fields)
        const { ephemeral_5m_input_tokens: short = 0, ephemeral_1h_input_tokens: long = 0 } = written ?? {}
        expect(ttl === '1h' ? long : short).toBeGreaterThan(0)
        expect(ttl === '1h' ? short : long).toBe(0)
      }
    for (const fields of bodies({ cache_control: null }))
      expect(writtenOf(await usageOf(await siteOf(serve), fields))).toBe(0)
  },

  'anthropic:cache:order': async (serve) => {
    const site = await siteOf(serve)
    const fields = (system: string, question: string): object => ({
      messages: [user([kept(question)])],
      system: [kept(system)],
      tools: [tool('now'), tool('later', ephemeral)],
    })

    const numbers = await numbersOf(
      site,
      fields('Be brief.', 'Where is it?'),
      fields('Be brief.', 'How is it?'),
      fields('Be kind.', 'Where is it?'),
    )

    expect(numbers).toEqual([
      [0, 4],
      [3, 1],
      [2, 2],
    ])
  },

  'anthropic:cache:at-most-four': async (serve) => {
    const most = 'A maximum of 4 blocks with cache_control may be provided. Found 5.'
    const four = [kept('1'), kept('2'), kept('3'), kept('4')]
    const site = await siteOf(serve)

    await expectRefused(serve, { messages: [user([...four, kept('5')])] }, most)
    await expectRefused(serve, { system: four, tools: [tool('now', ephemeral)] }, most)
    await expectRefused(serve, { ...ephemeral, system: four }, most)

    expect(await numbersOf(site, { messages: [user(four)] })).toEqual([[0, 1]])
  },

  'anthropic:cache:unmarkable-blocks': async (serve) => {
    const empty = 'cache_control cannot be set for empty text blocks'
    const thought = { type: 'thinking', thinking: 'Hm.', signature: 'x', ...ephemeral }
    const redacted = { type: 'redacted_thinking', data: 'AAAA', ...ephemeral }

    await expectRefused(
      serve,
      { messages: [user([text('Hi'), kept('')])] },
      `messages.0.content.1.text: ${empty}`,
    )
    await expectRefused(serve, { system: [kept('')] }, `system.0.text: ${empty}`)
    for (const block of [thought, redacted])
      await expectRefused(
        serve,
        { messages: [user('Hi'), assistant([block, text('Well.')])] },
        'messages.1.content.0.cache_control: Extra inputs are not permitted',
      )
  },

  'anthropic:cache:types': async (serve) => {
    const control = (cache_control: unknown): object => ({
      messages: [user([text('Hi', { cache_control })])],
    })
    const at = 'messages.0.content.0.cache_control'

    await expectRefused(serve, control({ type: 'persistent' }), `${at}.type: Input should be 'ephemeral'`)
    await expectRefused(serve, control({ ttl: '5m' }), `${at}.type: Field required`)
    for (const ttl of ['10m', '', 300, {}])
      await expectRefused(
        serve,
        control({ type: 'ephemeral', ttl }),
        `${at}.ttl: Input should be '5m' or '1h'`,
      )
    await expectRefused(
      serve,
      { cache_control: { type: 'ephemeral', ttl: '10m' } },
      "cache_control.ttl: Input should be '5m' or '1h'",
    )
  },

  'anthropic:cache:longer-first': async (serve) => {
    const late = (at: string): string =>
      `${at}cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: \`tools\`, \`system\`, \`messages\`.`

    await expectRefused(
      serve,
      { messages: [user([kept('a'), text('b', forAnHour)])] },
      late('messages.0.content.1.'),
    )
    await expectRefused(
      serve,
      { system: [text('a', forAnHour)], tools: [tool('now', ephemeral)] },
      late('system.0.'),
    )
    await expectRefused(serve, { ...forAnHour, system: [kept('a')] }, late(''))
  },

  'anthropic:cache:mixed-lifetimes': async (serve) => {
    const site = await siteOf(serve)
    const fields = {
      tools: [tool('now', forAnHour)],
      system: [text('Be brief.', forAnHour)],
      messages: [user([kept('Hi')]), assistant('Well?'), user('So?')],
    }
    const written = async (): Promise<unknown> => {
      const usage = await usageOf(site, fields)
      expect(sumOf(usage)).toBe(5)
      const { ephemeral_1h_input_tokens: long, ephemeral_5m_input_tokens: short } = usage.cache_creation ?? {}
      return { read: readOf(usage), long, short, rest: usage.input_tokens }
    }

    expect(await written()).toEqual({ read: 0, long: 2, short: 1, rest: 2 })
    site.clock.ms = minutes(59)
    expect(await written()).toEqual({ read: 2, long: 0, short: 1, rest: 2 })
    site.clock.ms += minutes(60)
    expect(await written()).toEqual({ read: 0, long: 2, short: 1, rest: 2 })
  },

  'anthropic:cache:automatic': async (serve) => {
    const thought = { type: 'thinking', thinking: 'Hm.', signature: 'x' }
    const written = async (fields: object): Promise<number> =>
      writtenOf(await usageOf(await siteOf(serve), { ...ephemeral, ...fields }))

    expect(await written({})).toBe(1)
    expect(await written({ system: 'Be brief.', messages: [user('a'), assistant('b'), user('c')] })).toBe(4)
    expect(await written({ messages: [user('a'), assistant([used('a')]), user([result('a')])] })).toBe(3)
    // Thinking and empty text cannot have a breakpoint, so the breakpoint is on the block before them.
    expect(await written({ messages: [user('a'), assistant([text('b'), thought]), user('')] })).toBe(2)
    expect(await written({ tools: [tool('now')], system: 'Be brief.', messages: [user('')] })).toBe(2)
    expect(await written({ messages: [user('')] })).toBe(0)
  },

  'anthropic:cache:automatic-beside-others': async (serve) => {
    const site = await siteOf(serve)
    const four = [kept('1'), kept('2'), kept('3'), kept('4')]

    // The last block already has this breakpoint.
    expect(await numbersOf(site, { ...ephemeral, messages: [user(four)] })).toEqual([[0, 1]])
    await expectRefused(
      serve,
      { ...forAnHour, messages: [user([kept('a')])] },
      expect.stringMatching(/^cache_control\.ttl: /),
    )
    await expectRefused(
      serve,
      { ...ephemeral, messages: [user([...four, text('5')])] },
      'A maximum of 4 blocks with cache_control may be provided. Found 5.',
    )
  },

  'anthropic:cache:lifetime': async (serve) => {
    const site = await siteOf(serve)
    const short = { system: [kept('Be brief.')] }
    const long = { system: [text('Be kind.', forAnHour)] }
    const later = async (ms: number, fields: object): Promise<unknown> => {
      site.clock.ms += ms
      return (await numbersOf(site, fields))[0]
    }

    expect(await later(0, short)).toEqual([0, 1])
    expect(await later(minutes(4), short)).toEqual([1, 0])
    expect(await later(minutes(4), short)).toEqual([1, 0])
    expect(await later(minutes(5) + 10_000, short)).toEqual([0, 1])

    expect(await later(0, long)).toEqual([0, 1])
    expect(await later(minutes(59), long)).toEqual([1, 0])
    expect(await later(minutes(59), long)).toEqual([1, 0])
    expect(await later(minutes(60) + 10_000, long)).toEqual([0, 1])
  },

  'anthropic:cache:at-breakpoints': async (serve) => {
    const site = await siteOf(serve)
    const talk = (...texts: readonly (string | object[])[]): object => ({
      messages: texts.map((content, at) => (at % 2 === 0 ? user(content) : assistant(content))),
    })

    const numbers = await numbersOf(
      site,
      talk('a', 'b', [kept('c')]),
      // The first request cached the prefix up to c, and no shorter prefix.
      talk([kept('a')], 'x', 'y'),
      talk('a', 'b', 'c', 'd', [kept('e')]),
      // Nothing after the last breakpoint is read.
      talk('a', 'b', [kept('c')], 'd', 'e'),
    )

    expect(numbers).toEqual([
      [0, 3],
      [0, 1],
      [3, 2],
      [3, 0],
    ])
  },

  'anthropic:cache:far-back': async (serve) => {
    const site = await siteOf(serve)
    const steps = Array.from({ length: 25 }, (_, at) => [
      assistant([used(`t${at}`)]),
      user([result(`t${at}`, { content: `Step ${at}.` })]),
    ]).flat()

    const numbers = await numbersOf(
      site,
      { messages: [user([kept('Go.')])] },
      { ...ephemeral, messages: [user('Go.'), ...steps] },
    )

    expect(numbers).toEqual([
      [0, 1],
      [1, 50],
    ])
  },

  'anthropic:cache:exact': async (serve) => {
    const schema = (properties: object): object => ({ type: 'object', properties })
    const [a, b] = [{ type: 'string' }, { type: 'number' }]
    const tools = (...names: readonly string[]): object => ({
      tools: names.map((name, at) => tool(name, at === names.length - 1 ? ephemeral : {})),
    })
    const shaped = (input_schema: object): object => ({
      tools: [tool('now', { input_schema, ...ephemeral })],
    })
    const called = (input: object): object => ({
      messages: [user('Hi'), assistant([used('a', { input })]), user([result('a', ephemeral)])],
    })
    const readAfter = async (first: object, second: object): Promise<number> => {
      const site = await siteOf(serve)
      await usageOf(site, first)
      return readOf(await usageOf(site, second))
    }

    for (const [first, second] of [
      [{ system: [kept('Be brief.')] }, { system: [kept('Be brief!')] }],
      [tools('now', 'later'), tools('later', 'now')],
      [shaped(schema({ a, b })), shaped(schema({ b, a }))],
      [called({ a: 1, b: 2 }), called({ b: 2, a: 1 })],
    ] as const)
      expect(await readAfter(first, second)).toBe(0)
    // A single text block equals the same plain text.
    expect(
      await readAfter(
        { messages: [user([kept('Hi')])] },
        { messages: [user('Hi'), assistant('Well?'), user([kept('So?')])] },
      ),
    ).toBe(1)
  },

  'anthropic:cache:invalidation': async (serve) => {
    const image = { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } }
    const thought = { type: 'thinking', thinking: 'Hm.', signature: 'x' }
    const conversation = (content: unknown, ...before: readonly object[]): object => ({
      messages: [
        user('Hi'),
        assistant([...before, used('a')]),
        user([result('a', { content }), kept('So?')]),
      ],
    })
    const fields = {
      tools: [tool('now', ephemeral)],
      system: [kept('Be brief.')],
      ...conversation('Noon.'),
    }
    /** Cached tokens that a changed request reads. The prompt has 6: one tool, one system, and four turns. */
    const readAfter = async (change: object): Promise<number> => {
      const site = await siteOf(serve)
      await usageOf(site, fields)
      return readOf(await usageOf(site, { ...fields, ...change }))
    }

    expect(await readAfter({})).toBe(6)
    for (const tools of [
      [tool('now', { description: 'Says when.', ...ephemeral })],
      [tool('first'), tool('now', ephemeral)],
    ])
      expect(await readAfter({ tools })).toBe(0)
    expect(await readAfter({ model: 'other' })).toBe(0)
    expect(await readAfter({ system: [kept('Be kind.')] })).toBe(1)
    // The API keeps the cache of tools and system here. Keeping more is allowed.
    for (const change of [
      { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
      { tool_choice: { type: 'any' } },
      { thinking: { type: 'adaptive' } },
      conversation([image]),
      conversation('Noon.', thought),
    ])
      expect(await readAfter(change)).toBeGreaterThanOrEqual(2)
  },

  'anthropic:cache:same-answer': async (serve) => {
    const { url } = await siteOf(serve)
    const said: unknown[] = []

    for (const fields of [{}, ephemeral, ephemeral])
      said.push(textOf(await messageOf(await ask(url, { ...greeting, ...fields }))))

    expect(said).toEqual(Array(3).fill('Hello there.'))
  },

  'anthropic:cache:no-waiting': async (serve) => {
    let open = (): void => {}
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    let asked = 0
    const engine = scriptedEngine(async () => {
      if (asked++ === 0) await opened
      return 'Hello there.'
    })
    const site = { url: await serve(engine), callAs: () => {} }
    const fields = { system: [kept('Be brief.')] }

    const first = usageOf(site, fields)
    await expect.poll(() => engine.requests.length).toBe(1)
    const second = await usageOf(site, fields)
    open()
    const firstUsage = await first

    expect([readOf(second), writtenOf(second)]).toEqual([0, 1])
    expect(sumOf(firstUsage)).toBe(sumOf(second))
  },

  'anthropic:cache:pre-warm-rejected': async (serve) => {
    const { url, engine } = await siteOf(serve)
    const format = { type: 'json_schema', schema: { type: 'object' } }
    const tools = [tool('now')]

    for (const fields of [
      { stream: true },
      { thinking: { type: 'enabled', budget_tokens: 1_024 } },
      { output_config: { format } },
      { output_format: format },
      { tools, tool_choice: { type: 'any' } },
      { tools, tool_choice: { type: 'tool', name: 'now' } },
    ])
      await expectAnthropicError(
        await ask(url, { ...greeting, ...fields, max_tokens: 0 }),
        400,
        'invalid_request_error',
        expect.stringMatching(/^max_tokens: /),
      )
    expect(engine.requests).toEqual([])
  },
} satisfies Partial<Record<AnthropicRequirementId, Check>>
