/** C-5: servers leaked memory with each request, until the machine was full. */
import { Agent, type IncomingMessage, request } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { listen } from '../../support/listen.ts'
import { chats } from '../../support/served.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const heapMegabytes = (): number => {
  collectGarbage()
  return process.memoryUsage().heapUsed / 1024 ** 2
}
const models = emptyFolder()
const clients = 8

test('after 10,000 calls with keys, limits and a ledger, the heap is as large as after 2,000', async () => {
  const { generate: _, ...rest } = scriptedEngine('')
  const llm = await createLlm({
    // Does not record requests.
    engine: { ...rest, generate: (...call) => scriptedEngine('Hello there.').generate(...call) },
    models,
    auth: 'keys',
    database: ':memory:',
  })
  const { secret } = await llm.keys.create({
    name: 'busy',
    limits: { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrent: 100 },
  })
  const { url, close } = await listen(express().use(llmRouter(llm)))
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  onTestFinished(async () => {
    agent.destroy()
    await close()
    await llm.close()
  })
  const headers = { 'content-type': 'application/json', 'x-api-key': secret }
  const statusOf = (index: number): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const { path, body } = chats[index % chats.length] as (typeof chats)[number]
      const outgoing = request(url + path, { method: 'POST', agent, headers })
      outgoing.on('error', reject)
      outgoing.on('response', (response: IncomingMessage) =>
        response.resume().on('end', () => resolve(response.statusCode)),
      )
      // Every tenth call is invalid, every second one a stream.
      outgoing.end(JSON.stringify(index % 10 ? { ...body, stream: index % 2 === 0 } : { model: 5 }))
    })
  const failed: unknown[] = []
  const run = async (from: number, to: number): Promise<void> => {
    const client = async (first: number): Promise<void> => {
      for (let index = first; index < to; index += clients) {
        const status = await statusOf(index)
        if (status !== (index % 10 ? 200 : 400)) failed.push([index, status])
      }
    }
    await Promise.all(Array.from({ length: clients }, (_, at) => client(from + at)))
  }

  await run(0, 2_000)
  const early = heapMegabytes()
  await run(2_000, 10_000)
  const late = heapMegabytes()

  expect(failed).toEqual([])
  // The database in memory is outside of the heap.
  expect(late - early).toBeLessThan(5)
}, 120_000)
