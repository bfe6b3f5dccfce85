/** Runs nginx of Debian with docs/operations/deploy/nginx/modelmount.conf in front of an app. */
import { execFileSync, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { scriptedEngine } from '@modelmount/core/testing'
import { healthRouter, llmRouter } from '@modelmount/express'
import express from 'express'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { freePort } from '../support/free-port.ts'
import { listen } from '../support/listen.ts'
import { readRecipe, requireProgram } from './debian.ts'

const folder = emptyFolder()
const scripted = scriptedEngine('one two three four five')
const allowance = new EventEmitter()
let lastSignal: AbortSignal | undefined
let allowedWords = 0

/** Lets the engine generate this many words, and no others. */
function allow(words: number): void {
  allowedWords = words
  allowance.emit('change')
}

const engine: Engine = {
  ...scripted,
  async *generate(request, call) {
    lastSignal = call.signal
    call.signal.addEventListener('abort', () => allowance.emit('change'))
    for await (const event of scripted.generate(request, call)) {
      if (event.type === 'text') {
        while (allowedWords === 0 && !call.signal.aborted) await once(allowance, 'change')
        allowedWords--
      }
      if (call.signal.aborted) return
      yield event
    }
  },
}
const seen: { readonly url: string | undefined; readonly forwarded: unknown; readonly host: unknown }[] = []
let url: string
let stop: () => Promise<unknown>

beforeAll(async () => {
  const nginx = requireProgram('nginx')
  const llm = await createLlm({ models: folder, engine, auth: 'host' })
  const app = express().use((request, _response, next) => {
    const { 'x-forwarded-for': forwarded, host } = request.headers
    seen.push({ url: request.url, forwarded, host })
    next()
  })
  app.use(healthRouter(llm, { authenticate: () => ({ id: 'anyone' }) }))
  app.use(llmRouter(llm, { authenticate: () => ({ id: 'anyone', scopes: ['inference', 'models'] }) }))
  app.get('/metrics', (_request, response) => void response.send('metrics'))
  const upstream = await listen(app)
  const port = await freePort()
  const recipe = readRecipe('nginx/modelmount.conf')
    .replace('127.0.0.1:3000', new URL(upstream.url).host)
    .replace('listen 80;', `listen 127.0.0.1:${port};`)
  const file = join(folder, 'nginx.conf')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  writeFileSync(join(folder, 'modelmount.conf'), recipe)
  writeFileSync(
    file,
    `daemon off; pid ${folder}/pid; error_log ${folder}/errors; events {}
     http { access_log off; ${temporary.join(' ')} include ${folder}/modelmount.conf; }`,
  )
  execFileSync(nginx, ['-t', '-c', file, '-e', join(folder, 'errors')], { stdio: 'pipe' })
  const child = spawn(nginx, ['-c', file, '-e', join(folder, 'errors')], { stdio: 'ignore' })
  url = `http://127.0.0.1:${port}`
  await vi.waitFor(() => fetch(url), { timeout: 5_000 })
  stop = async () => {
    child.kill('SIGTERM')
    await once(child, 'exit')
    await upstream.close()
    await llm.close()
  }
}, 60_000)

afterAll(() => stop())

const chat = (signal?: AbortSignal, headers = {}) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'accept-encoding': 'gzip', ...headers },
    body: JSON.stringify({ model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Hello' }] }),
    ...(signal && { signal }),
  })

test('each token of a stream arrives before the next one is generated', async () => {
  const response = chat()
  allow(1)
  const { body } = await response
  const reader = (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const readUntil = async (word: string) => {
    while (!text.includes(word)) {
      const { value, done } = await reader.read()
      if (done) throw new Error(`The stream ended before "${word}": ${text}`)
      text += value
    }
  }

  await readUntil('one')
  for (const word of ['two', 'three']) {
    allow(1)
    await readUntil(word)
  }
  expect(text).not.toContain('four')
  allow(5)
  await readUntil('[DONE]')
})

test('a client that leaves ends its call', async () => {
  const controller = new AbortController()
  const leaving = chat(controller.signal)
  allow(1)
  await (await leaving).body?.getReader().read()

  controller.abort()

  await vi.waitFor(() => expect(lastSignal?.aborted).toBe(true), { timeout: 5_000 })
})

test('the app gets the host and the address of the client, which the client cannot forge', async () => {
  allow(5)
  await (await chat(undefined, { 'x-forwarded-for': '192.0.2.9' })).text()

  expect(seen.at(-1)).toEqual({
    url: '/v1/chat/completions',
    forwarded: '127.0.0.1',
    host: new URL(url).host,
  })
})

test('a large body goes to the app while it arrives', async () => {
  const before = seen.length
  const { port } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.write(
    `POST /api/blobs/sha256:${'0'.repeat(64)} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 20000000\r\n\r\n${'x'.repeat(1_000_000)}`,
  )

  await vi.waitFor(() => expect(seen.length).toBe(before + 1), { timeout: 5_000 })
  socket.destroy()
})

test.each(['/metrics', '/livez', '/readyz', '/startupz'])('clients cannot read %s', async (path) => {
  const before = seen.length

  expect((await fetch(url + path)).status).toBe(403)
  expect(seen.length).toBe(before)
})
