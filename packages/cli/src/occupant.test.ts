import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Server } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { occupantOf } from './occupant.ts'

const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function occupied(server: Server): Promise<string> {
  servers.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const answering = (answer: RequestListener) => occupied(createServer(answer))

test('recognises Ollama by its greeting', async () => {
  const address = await answering((_req, res) => res.end('Ollama is running'))

  expect(await occupantOf(address)).toBe('Ollama')
})

test('recognises another Modelmount by its built-in model', async () => {
  const address = await answering((req, res) => {
    res.end(req.url === '/v1/models' ? '{"data":[{"id":"tiny:latest","owned_by":"modelmount"}]}' : '{}')
  })

  expect(await occupantOf(address)).toBe('another Modelmount')
})

test('reports any other web server as another program', async () => {
  const address = await answering((_req, res) => res.end('<h1>It works!</h1>'))

  expect(await occupantOf(address)).toBe('another program')
})

test('reports an unresponsive server as another program, after a time limit', async () => {
  const address = await occupied(createSocketServer((socket) => socket.unref()))

  expect(await occupantOf(address)).toBe('another program')
})
