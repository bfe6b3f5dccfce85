/**
 * Apps that close while clients read streams. The first half of the streams ends before the deadline. Of the others,
 * the clients get all tokens until then, and an error.
 */
import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { WatchedSet } from '../../packages/core/src/util/watched-set.ts'
import { allCalls } from '../support/all-calls.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'
import { mounts } from '../support/mounts.ts'
import { chats, post } from '../support/served.ts'
import { apps, closesServer } from './apps.ts'
import { dialects, type ReadStream, readChat } from './streamed-chats.ts'

const models = emptyFolder()
const cutShort = 'The server closed before the answer was complete. Send the request again.'

describe.each(Object.entries(apps))('%s', (_name, startApp) => {
  test('50 streams lose no token that was generated before the deadline, and no row', async () => {
    // The content of each chat is the number of its tokens.
    const engine = scriptedEngine(
      ({ input }) =>
        Array.from(
          { length: input.kind === 'chat' ? Number(textOf(input.messages[0])) : 0 },
          (_, i) => `w${i} `,
        ),
      { delayMs: 20 },
    )
    const database = await emptyDatabase()
    const { llm, url, close } = await startApp({ engine, models, database, maxAdmitted: 100 })
    const reading = await begin50((index, onText) =>
      readChat(url, dialectAt(index), { content: String(index % 2 === 0 ? 40 : 4_000) }, onText),
    )

    const closing = close()
    await Promise.all(reading.filter((_, index) => index % 2 === 0))
    // Moves the deadline forward, to now.
    await Promise.all([closing, llm.close({ drain: 1 })])

    const read = await Promise.all(reading)
    const complete = read.filter(({ isComplete }) => isComplete)
    const cut = read.filter(({ isComplete }) => !isComplete)
    expect([complete.length, cut.length]).toEqual([25, 25])
    expect(new Set(complete.map(({ texts, error }) => [texts.length, error].join()))).toEqual(
      new Set(['40,']),
    )
    for (const { texts, error } of cut) {
      expect(error).toBe(cutShort)
      expect(texts.length).toBeGreaterThan(1)
      expect(texts).toEqual(texts.map((_, i) => `w${i} `))
    }
    const rows = await rowsIn(database)
    expect(rows.map(({ undeliveredTokens }) => undeliveredTokens)).toEqual(Array(50).fill(0))
    expect(rows.map(toSummary).sort()).toEqual(read.map(toSummary).sort())
  })
})

describe.each(Object.entries(mounts))('%s', (_name, mount) => {
  test('a new request is rejected during the drain, and its connection is closed', async () => {
    let answer: (text: string) => void = () => {}
    const engine = scriptedEngine(
      () =>
        new Promise((resolve) => {
          answer = resolve
        }),
    )
    const { llm, url } = await closesServer(mount)({ engine, models })
    const running = readChat(url, dialectAt(0), { content: 'Hi' })
    await vi.waitUntil(() => engine.requests.length === 1)

    const closing = llm.close({ drain: '10s' })
    const rejected = await Promise.all(chats.map(({ path, body }) => post(url + path, body)))
    answer('Hello.')

    expect(
      rejected.map(({ status, headers }) => [status, headers.get('retry-after'), headers.get('connection')]),
    ).toEqual([
      [503, '1', 'close'],
      [529, '1', 'close'],
      [503, '1', 'close'],
    ])
    expect(await rejected[0]?.json()).toMatchObject({ error: { message: 'The server is closing.' } })
    expect(await running).toMatchObject({ texts: ['Hello.'], isComplete: true })
    await closing
  })
})

/** Holds the model to an answer of thousands of tokens. */
const longList = {
  type: 'json_schema',
  json_schema: { name: 'list', schema: { type: 'array', items: { enum: ['a', 'b'] }, minItems: 2_000 } },
}

test('with the built-in model, 50 streams lose no token that their clients were sent, and no row', async () => {
  const database = await emptyDatabase()
  const llm = await createLlm({ models, database, local: { parallel: 50 } })
  onTestFinished(() => llm.close())
  const { url, server, close } = await listen(toNodeHandler(routesFor(), llm))
  onTestFinished(close)
  await llm.chat('Hi', { maxTokens: 1 })
  const reading = await begin50((index, onText) => {
    const more = index % 2 === 0 ? {} : { max_tokens: 3_000, response_format: longList }
    return readChat(url, dialectAt(0), { content: 'Hi', logprobs: true, ...more }, onText)
  })

  const closed = once(server, 'close')
  server.close()
  await llm.close({ drain: 1_000 })
  server.closeIdleConnections()
  await closed

  const read = await Promise.all(reading)
  const rows = (await rowsIn(database)).filter(({ dialect }) => dialect === 'openai')
  expect(read.some(({ isComplete }) => isComplete)).toBe(true)
  expect(read.some(({ error }) => error === cutShort)).toBe(true)
  expect(read.filter(({ isComplete, error }) => !isComplete && error !== cutShort)).toEqual([])
  expect(rows).toHaveLength(50)
  const counted = read.map(({ loggedTokens, isComplete }) => `${loggedTokens} ${isComplete}`).sort()
  expect(rows.map(({ tokens, isComplete }) => `${tokens} ${isComplete}`).sort()).toEqual(counted)
})

const dialectAt = (index: number) => dialects[index % dialects.length] as (typeof dialects)[number]

/** Starts 50 streams. Resolves when all of them have text. */
async function begin50(
  start: (index: number, onText: () => void) => Promise<ReadStream>,
): Promise<readonly Promise<ReadStream>[]> {
  const begun = new WatchedSet(Array.from({ length: 50 }, (_, index) => index))
  const reading = [...begun].map((index) => start(index, () => void begun.delete(index)))
  await Promise.race([begun.whenEmpty(), Promise.all(reading)])
  return reading
}

const textOf = (message: { readonly content: readonly object[] } | undefined): string => {
  const [part = {}] = message?.content ?? []
  return 'text' in part ? String(part.text) : ''
}

const emptyDatabase = async () => join(await mkdtemp(join(tmpdir(), 'drain-')), 'modelmount.db')

/** Opens the database of a closed app again. */
async function rowsIn(database: string) {
  const later = await createLlm({ models, database, engine: scriptedEngine('') })
  const rows = await allCalls(later)
  await later.close()
  return rows.map(({ dialect = '', status, tokens, undeliveredTokens }) => ({
    dialect,
    tokens: tokens.output,
    isComplete: status === 'ended',
    undeliveredTokens,
  }))
}

type Summarised = { readonly dialect: string; readonly isComplete: boolean } & (
  | Pick<ReadStream, 'texts'>
  | { readonly tokens: number }
)

const toSummary = (one: Summarised): string =>
  `${one.dialect} ${'texts' in one ? one.texts.length : one.tokens} ${one.isComplete}`
