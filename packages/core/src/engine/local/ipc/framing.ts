/**
 * Frames JSON messages on a local socket: four bytes of length, then UTF-8. Parsing takes time linear in the
 * message size.
 */
import { connect, type Socket } from 'node:net'

/** Maximum length of a message. It has room for a prompt with a whole book. */
const maxMessageBytes = 256 * 1024 * 1024

/** Resolves with `undefined` when no process listens. */
export function tryConnect(address: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(address)
    socket.on('error', () => resolve(undefined))
    socket.once('connect', () => resolve(socket))
  })
}

/** Errors of a connection to a socket that no process listens on. */
const notListening: ReadonlySet<string | undefined> = new Set(['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'])
/** Time after which a process counts as listening, since the check has no result. */
const checkTimeoutMs = 1_000

/**
 * Whether a process listens. Resolves with `true` if this is unknown. For example, a stopped process refuses
 * connections with another error once its queue of connections is full.
 */
export function isListening(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address)
    const end = (isAnswered: boolean): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(isAnswered)
    }
    const timer = setTimeout(end, checkTimeoutMs, true)
    socket.once('connect', () => end(true))
    socket.on('error', ({ code }: NodeJS.ErrnoException) => end(!notListening.has(code)))
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

/**
 * Calls `onMessage` for every complete message. Destroys the socket if a message is invalid or `onMessage`
 * throws.
 */
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
