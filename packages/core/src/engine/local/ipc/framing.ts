/** JSON messages over a local socket: four bytes of length, then UTF-8. Linear in the size of a message. */
import { connect, type Socket } from 'node:net'

/** A prompt can hold a whole book; nothing honest is larger than this. */
const maxMessageBytes = 256 * 1024 * 1024

/** Nothing where nobody answers. */
export function tryConnect(address: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(address)
    socket.on('error', () => resolve(undefined))
    socket.once('connect', () => resolve(socket))
  })
}

export function send(socket: Socket, message: object): void {
  if (socket.destroyed || socket.writableEnded) return
  const body = Buffer.from(JSON.stringify(message))
  const header = Buffer.alloc(4)
  header.writeUInt32BE(body.length)
  socket.cork()
  socket.write(header)
  socket.write(body)
  socket.uncork()
}

/** Calls back for every whole message; a peer that sends anything else is cut off. */
export function receive(socket: Socket, onMessage: (message: unknown) => void): void {
  let chunks: Buffer[] = []
  let buffered = 0
  let needed = 4
  let inHeader = true

  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    buffered += chunk.length
    if (buffered < needed) return
    let bytes = Buffer.concat(chunks)
    while (bytes.length >= needed) {
      const frame = bytes.subarray(0, needed)
      bytes = bytes.subarray(needed)
      if (inHeader) {
        needed = frame.readUInt32BE()
        if (needed > maxMessageBytes) return void socket.destroy()
      } else {
        needed = 4
        try {
          onMessage(JSON.parse(frame.toString()))
        } catch {
          return void socket.destroy()
        }
      }
      inHeader = !inHeader
    }
    chunks = [bytes]
    buffered = bytes.length
  })
}
