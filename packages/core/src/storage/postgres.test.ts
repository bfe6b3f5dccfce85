import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from './open.ts'

/** A message of PostgreSQL's protocol. */
function message(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from(type), length, body])
}

// Without a listener for it, such an error would end the process.
test('a server that ends a connection in the packet that opens it is an error of the call only', async () => {
  const packet = Buffer.concat([
    message('R', Buffer.alloc(4)),
    message('Z', Buffer.from('I')),
    message('E', Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0')),
  ])
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(packet))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  await expect(openDatabase(`postgres://user:secret@127.0.0.1:${port}/app`)).rejects.toThrow(/connection/i)
})
