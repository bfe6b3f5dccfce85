/** A fleet in front of small servers that answer, fail and come back as the tests say. */
import { setTimeout as delay } from 'node:timers/promises'
import { createLlm } from '@modelmount/core'
import { LlmError } from '@modelmount/core/engine'
import { expect, onTestFinished, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import {
  answerWith,
  askFleet,
  chatsOf,
  createFleet,
  nameOf,
  startFleet,
  streamOf,
} from '../support/fleet-servers.ts'
import { until } from '../support/processes.ts'
import { chatDelta, sendEvents, sendJson, type UpstreamServer } from '../support/upstream-server.ts'

const fail = (status: number, headers: Readonly<Record<string, string>> = {}): UpstreamServer['answer'] => {
  return (response, { path }) => {
    if (path === '/health') response.end()
    else {
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
      sendJson(response, { error: { message: 'no' } }, status)
    }
  }
}

test('the turns of a conversation go to one replica, and the conversations to all of them', async () => {
  const { fleet, counts } = await startFleet(4)
  const conversations = Array.from({ length: 40 }, (_, index) => [`Question ${index} about a topic`])

  for (let turn = 0; turn < 3; turn++) {
    for (const texts of conversations) texts.push(await askFleet(fleet, texts), `And then, ${turn}?`)
  }

  for (const texts of conversations) expect(new Set(texts.filter((_, i) => i % 2 === 1)).size).toBe(1)
  for (const count of counts()) expect(count).toBeGreaterThan(0)
})

test('another app process, which remembers nothing, sends a conversation to the same replica', async () => {
  const { fleet, servers } = await startFleet(4)
  const other = createFleet(servers)

  for (let index = 0; index < 20; index++) {
    const question = `Question ${index}`
    const answer = await askFleet(fleet, [question])
    expect(await askFleet(other, [question, answer, 'Go on'])).toBe(answer)
  }
})

test('a replica that fails before the first token costs the caller nothing', async () => {
  const { fleet, servers, ask } = await startFleet(3, { maxFailures: 2 })
  const [first] = servers as [UpstreamServer]
  first.answer = fail(500)

  const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => ask(`Question ${index}`)))

  expect(new Set(answers)).toEqual(new Set(['b', 'c']))
  const status = fleet.replicas().find(({ url }) => url.startsWith(first.url))
  expect(status).toMatchObject({ state: 'ejected', ejections: 1, lastFailure: { kind: 'failed' } })
  expect(
    fleet.replicas().every(({ outstandingTokens, runningCalls }) => !outstandingTokens && !runningCalls),
  ).toBe(true)
})

test('an error of the caller is not tried again, and says nothing about the replica', async () => {
  const { fleet, servers, ask, counts } = await startFleet(3)
  for (const server of servers) server.answer = fail(400)

  await expect(ask('Hi')).rejects.toMatchObject({ code: 'invalid_request' })

  expect(counts().reduce((sum, count) => sum + count)).toBe(1)
  expect(fleet.replicas().map(({ state, failedCalls }) => [state, failedCalls])).toEqual(
    Array(3).fill(['ready', 0]),
  )
})

test('a caller whose calls every replica fails at ejects none of them', async () => {
  const { fleet, servers, ask } = await startFleet(2, { maxFailures: 2 })
  const good = servers.map(({ answer }) => answer)
  for (const server of servers) server.answer = fail(500)

  for (let index = 0; index < 6; index++)
    await expect(ask(`A pattern that crashes ${index}`)).rejects.toMatchObject({ code: 'upstream' })

  expect(fleet.replicas()).toMatchObject([
    { state: 'ready', failedCalls: 6, lastFailure: { kind: 'failed' } },
    { state: 'ready', failedCalls: 6, lastFailure: { kind: 'failed' } },
  ])
  servers.forEach((server, index) => {
    server.answer = good[index] as UpstreamServer['answer']
  })
  expect(['a', 'b']).toContain(await ask('Hi'))
})

test('after the first token, a failure is a typed error, and no other replica is asked', async () => {
  const { servers, ask, counts } = await startFleet(3)
  for (const server of servers)
    server.answer = (response) => {
      sendEvents(response, chatDelta({ content: 'Good' }))
      setImmediate(() => response.destroy())
    }

  await expect(ask('Hi')).rejects.toMatchObject({ code: 'upstream', details: { upstreamFailure: 'lost' } })
  expect(counts().reduce((sum, count) => sum + count)).toBe(1)
})

test('a call goes to other replicas while one is overloaded, and is overloaded only if all are', async () => {
  const { fleet, servers, ask, counts } = await startFleet(2)
  const [first, second] = servers as [UpstreamServer, UpstreamServer]
  first.answer = fail(429, { 'retry-after': '20' })

  for (let index = 0; index < 20; index++) expect(await ask(`Question ${index}`)).toBe('b')
  expect(counts()[0]).toBe(1)
  expect(fleet.replicas().map(({ state }) => state)).toEqual(['overloaded', 'ready'])

  second.answer = fail(503, { 'retry-after': '7' })
  await expect(ask('Hi')).rejects.toMatchObject({ code: 'overloaded', details: { retryAfterMs: 7_000 } })
})

test('a replica that has ended is ejected, and returns when it answers again', async () => {
  const { fleet, servers, ask } = await startFleet(2, { health: { intervalMs: 50 } })
  const events: string[] = []
  fleet.onReplicaEvent(({ type, failure }) => void events.push([type, failure].filter(Boolean).join(' ')))
  const [first] = servers as [UpstreamServer]
  await ask('Hello')
  await first.close()

  for (let index = 0; index < 10; index++) expect(await ask(`Question ${index}`)).toBe('b')
  await until(() => events.includes('eject unreachable'), 5_000)
  await first.restart()

  await until(() => events.includes('return'), 10_000)
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => ask(`Question ${20 + index}`)))
  expect(new Set(answers)).toEqual(new Set(['a', 'b']))
})

test('if all replicas have failed, calls try one that may work again', async () => {
  const { servers, ask } = await startFleet(2, { health: false, maxFailures: 1 })
  for (const server of servers) server.answer = fail(500)
  await expect(ask('Hi')).rejects.toMatchObject({ code: 'upstream' })

  for (const [index, server] of servers.entries()) server.answer = answerWith(nameOf(index))

  expect(['a', 'b']).toContain(await ask('Hi'))
})

test('a replica that leaves ends its running calls, and gets no others', async () => {
  let urls: readonly string[] = []
  const { fleet, servers, ask } = await startFleet(2, { replicas: () => urls, refreshMs: 100 })
  const [first, second] = servers as [UpstreamServer, UpstreamServer]
  urls = [first.url]
  let release = (): void => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  first.answer = async (response, request) => {
    sendEvents(response, chatDelta({ content: 'long' }))
    await held
    answerWith(' answer')(response, request)
  }
  const events = streamOf(fleet, ['Hi'])[Symbol.asyncIterator]()
  await events.next()

  urls = [second.url]

  await until(() => fleet.replicas().some(({ state }) => state === 'draining'), 5_000)
  for (let index = 0; index < 10; index++) expect(await ask(`Question ${index}`)).toBe('b')
  release()
  let text = ''
  for (let event = await events.next(); !event.done; event = await events.next())
    if (event.value.type === 'text') text += event.value.text
  expect(text).toBe('long answer')
  await until(() => fleet.replicas().length === 1, 5_000)
  expect(chatsOf(first)).toHaveLength(1)
})

test('the app drains a replica and resumes it', async () => {
  const { fleet, servers, ask } = await startFleet(2)
  await ask('Hello')

  await fleet.drain(servers[0]?.url ?? '')
  for (let index = 0; index < 10; index++) expect(await ask(`Question ${index}`)).toBe('b')
  fleet.resume(servers[0]?.url ?? '')

  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => ask(`Question ${index}`)))
  expect(new Set(answers)).toEqual(new Set(['a', 'b']))
})

test('retries end with their budget', async () => {
  const { servers, ask, counts } = await startFleet(4, {
    retryBudget: 0.2,
    maxFailures: 1_000,
    maxRetries: 3,
  })
  for (const server of servers) server.answer = fail(500)
  const total = () => counts().reduce((sum, count) => sum + count)

  for (let index = 0; index < 20; index++) await ask('Hi').catch(() => {})
  const before = total()
  for (let index = 0; index < 100; index++) await ask('Hi').catch(() => {})

  // 100 calls, and 20 % more.
  expect(total() - before).toBe(120)
})

test('a second replica is asked when the first token is late, and the late call is aborted', async () => {
  const { servers, ask, counts } = await startFleet(2)
  const fleet = createFleet(servers, { hedgeAfterMs: 50 })
  const closed: boolean[] = [false, false]
  const late: UpstreamServer['answer'] = (response, { path }) => {
    if (path === '/health') response.end()
    else {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      response.on('close', () => void closed.splice(0, 1, true))
    }
  }
  const home = await ask('Hi')
  const slow = servers[home === 'a' ? 0 : 1] as UpstreamServer
  slow.answer = late

  const answer = await askFleet(fleet, ['Hi'])

  expect(answer).toBe(home === 'a' ? 'b' : 'a')
  expect(counts()).toEqual(home === 'a' ? [2, 1] : [1, 2])
  await until(() => closed[0] === true, 5_000)
  expect(fleet.replicas().map(({ failedCalls, runningCalls }) => failedCalls + runningCalls)).toEqual([0, 0])
})

test('a caller who leaves before the first token ends the call at the replica', async () => {
  const { fleet, servers } = await startFleet(1)
  let isClosed = false
  const [server] = servers as [UpstreamServer]
  server.answer = (response) =>
    void response
      .writeHead(200)
      .on('close', () => {
        isClosed = true
      })
      .flushHeaders()
  const leaving = new AbortController()
  const answer = streamOf(fleet, ['Hi'], { signal: leaving.signal })[Symbol.asyncIterator]().next()
  await until(() => chatsOf(server).length === 1, 5_000)

  leaving.abort()

  expect(await answer).toMatchObject({ done: true })
  await until(() => isClosed, 5_000)
  expect(fleet.replicas()).toMatchObject([{ state: 'ready', runningCalls: 0, outstandingTokens: 0 }])
})

test('a model that some replicas have goes to those, and the list has the models of all', async () => {
  const { fleet, servers } = await startFleet(3)
  const [, second] = servers as [UpstreamServer, UpstreamServer]
  second.models = (response) => sendJson(response, { data: [{ id: 'small' }, { id: 'large' }] })
  const { signal } = new AbortController()
  const ask = async (model: string) =>
    (await collect(fleet.generate({ model, input: { kind: 'text', prompt: ['Hi'] } }, { signal }))).text

  expect((await fleet.listModels?.())?.map(({ name }) => name).sort()).toEqual(['large', 'small'])
  for (let index = 0; index < 5; index++) expect(await ask('large')).toBe('b')
  await expect(ask('none')).rejects.toMatchObject({ code: 'not_found' })
  expect(await fleet.findModel?.('none')).toBeUndefined()
})

test('50 streams run while their replica ends: each is a typed error or an answer, and the ledger has what clients got', async () => {
  const { fleet, servers } = await startFleet(2, { loadFloorTokens: 1e9 })
  const llm = await createLlm({
    ...{ models: emptyFolder(), database: ':memory:', engines: { gpu: fleet } },
    prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 1 } },
    maxAdmitted: 100,
  })
  onTestFinished(() => llm.close())
  const [first] = servers as [UpstreamServer]
  for (const server of servers)
    server.answer = async (response, { path }) => {
      for (let index = 0; index < 20 && path !== '/health'; index++) {
        sendEvents(response, chatDelta({ content: `word${index} ` }))
        await delay(10)
      }
      sendEvents(response, chatDelta({}, 'stop'), 'data: [DONE]\n\n').end()
    }
  const received: number[] = []
  const run = async (index: number): Promise<unknown> => {
    let tokens = 0
    try {
      const pieces = llm
        .as({ id: `user${index}` })
        .chat(`Question ${index}`, { model: 'gpu/small', stream: true })
      for await (const piece of pieces) tokens += piece.split('word').length - 1
      return 'ended'
    } catch (error) {
      return error
    } finally {
      received[index] = tokens
    }
  }

  const outcomes = Promise.all(Array.from({ length: 50 }, (_, index) => run(index)))
  await until(
    () => chatsOf(first).length > 5 && servers.reduce((sum, one) => sum + chatsOf(one).length, 0) === 50,
    10_000,
  )
  await first.close()

  const results = await outcomes
  const errors = results.filter((result) => result !== 'ended')
  expect(errors.length).toBeGreaterThan(0)
  for (const error of errors) {
    expect(LlmError.is(error)).toBe(true)
    expect(error).toMatchObject({ code: 'upstream' })
  }
  const rows = await llm.usage.calls({ limit: 100 })
  expect(rows).toHaveLength(50)
  const charged = rows.reduce((sum, { tokens }) => sum + tokens.output, 0)
  expect(charged).toBe(received.reduce((sum, count) => sum + count, 0))
})

test('app processes that disagree about health both answer', async () => {
  const { fleet, servers } = await startFleet(2, { health: false, maxFailures: 1 })
  const other = createFleet(servers, { health: false, maxFailures: 1 })
  const [first, second] = servers as [UpstreamServer, UpstreamServer]
  first.answer = fail(500)
  await Promise.all(Array.from({ length: 10 }, (_, index) => askFleet(fleet, [`Question ${index}`])))
  first.answer = answerWith('a')
  second.answer = fail(500)
  await Promise.all(Array.from({ length: 10 }, (_, index) => askFleet(other, [`Question ${index}`])))
  second.answer = answerWith('b')

  expect(fleet.replicas().map(({ state }) => state)).toEqual(['ejected', 'ready'])
  expect(other.replicas().map(({ state }) => state)).toEqual(['ready', 'ejected'])
  for (let index = 0; index < 10; index++) {
    expect(await askFleet(fleet, [`Question ${index}`])).toBe('b')
    expect(await askFleet(other, [`Question ${index}`])).toBe('a')
  }
})

test('the logger gets a line for each replica that is ejected or returns', async () => {
  const { fleet, servers, ask } = await startFleet(2, { health: { intervalMs: 50 } })
  const lines: unknown[] = []
  const write =
    (level: string) =>
    (details: object, message: string): void =>
      void lines.push([level, message, details])
  const logger = { info: write('info'), warn: write('warn'), error: write('error') }
  const llm = await createLlm({ models: emptyFolder(), engines: { gpu: fleet }, logger })
  onTestFinished(() => llm.close())
  const [first] = servers as [UpstreamServer]
  const url = `${first.url}/`
  await ask('Hello')

  await first.close()
  await until(() => lines.length === 3, 5_000)
  await first.restart()
  await until(() => lines.length === 4, 10_000)

  expect(lines).toEqual([
    ['info', 'replica joined', { engine: 'gpu', url }],
    ['info', 'replica joined', { engine: 'gpu', url: `${servers[1]?.url}/` }],
    ['warn', 'replica ejected', { engine: 'gpu', url, failure: 'unreachable' }],
    ['info', 'replica returned', { engine: 'gpu', url }],
  ])
})

test('without a list of replicas, calls fail with a typed error until there is one', async () => {
  let isKnown = false
  const { fleet, servers, ask } = await startFleet(1, {
    replicas: () => {
      if (isKnown) return servers.map(({ url }) => url)
      throw new Error('no list')
    },
  })

  await expect(ask('Hi')).rejects.toMatchObject({
    code: 'upstream',
    message: 'The replicas of this fleet cannot be found.',
  })
  expect(await fleet.listModels?.()).toEqual([])
  isKnown = true

  expect(await ask('Hi')).toBe('a')
})

test('a replica that does not say which models it has does not hold up the first call', async () => {
  const { servers, ask } = await startFleet(2)
  const [first] = servers as [UpstreamServer]
  first.models = () => {}
  const startedAt = performance.now()

  expect(await ask('Hi')).toBe('b')
  // The time limit of the list is 5 s.
  expect(performance.now() - startedAt).toBeLessThan(3_000)
})

test("a caller's mistake that one of two replicas reports does not wait for the other one", async () => {
  const { servers, ask } = await startFleet(2, { hedgeAfterMs: 20 })
  let isFirst = true
  for (const server of servers)
    server.answer = (response, request) => {
      if (request.path !== '/health' && isFirst) isFirst = false
      else fail(400)(response, request)
    }

  await expect(ask('Hi')).rejects.toMatchObject({ code: 'invalid_request' })
})
