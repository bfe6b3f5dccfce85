/**
 * C-2: a server advertised keep-alive and closed the socket after each stream, so that clients which reuse
 * sockets had up to half of their requests reset.
 */
import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { listen } from '../../support/listen.ts'
import { chats } from '../../support/served.ts'

const models = emptyFolder()
const clients = 4

test('1,000 streams of four clients share four sockets, and none is reset', async () => {
  const { generate: _, ...rest } = scriptedEngine('')
  const llm = await createLlm({
    // Does not record requests.
    engine: { ...rest, generate: (...call) => scriptedEngine('Hello there.').generate(...call) },
    models,
  })
  const { url, server, close } = await listen(express().use(llmRouter(llm)))
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  onTestFinished(async () => {
    agent.destroy()
    await close()
    await llm.close()
  })
  let connections = 0
  server.on('connection', () => connections++)
  const stream = ({ path, body }: (typeof chats)[number]): Promise<string> =>
    new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json' }
      const outgoing = request(url + path, { method: 'POST', agent, headers })
      outgoing.on('error', reject)
      outgoing.on('response', (response: IncomingMessage) => text(response).then(resolve, reject))
      outgoing.end(JSON.stringify({ ...body, stream: true }))
    })

  const ends = [/data: \[DONE\]\n\n$/, /event: message_stop\n.*\n\n$/, /"done":true.*\n$/]
  let ended = 0
  const client = async (first: number): Promise<void> => {
    for (let index = first; index < 1_000; index += clients) {
      const at = index % chats.length
      expect(await stream(chats[at] as (typeof chats)[number])).toMatch(ends[at] as RegExp)
      ended++
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, first) => client(first)))

  expect(ended).toBe(1_000)
  expect(connections).toBe(clients)
}, 20_000)
