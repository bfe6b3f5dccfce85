// A client with as little work as possible: a raw socket without a parser.
import { once } from 'node:events'
import { connect } from 'node:net'

const request = (port) => {
  const body = JSON.stringify({ model: 'any', stream: true, messages: [{ role: 'user', content: 'Hi' }] })
  return [
    'POST /v1/chat/completions HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

const lastChunk = Buffer.from('\r\n0\r\n\r\n')

/** Opens a connection that is kept alive. `ask()` resolves with the raw response when it is complete. */
export async function openConnection(port) {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const bytes = request(port)
  let answer

  socket.on('data', (data) => {
    answer.pieces.push(data)
    const end = data.length < lastChunk.length ? Buffer.concat(answer.pieces) : data
    if (end.subarray(-lastChunk.length).equals(lastChunk)) answer.resolve(Buffer.concat(answer.pieces))
  })
  socket.on('close', () => answer?.reject(new Error('The server closed the connection.')))

  return {
    ask: () =>
      new Promise((resolve, reject) => {
        if (socket.destroyed) reject(new Error('The server has closed the connection.'))
        answer = { pieces: [], resolve, reject }
        socket.write(bytes)
      }),
    close: () => socket.destroy(),
  }
}

/** Opens a stream whose bytes are counted and discarded until it is closed. */
export async function openStream(port) {
  const stream = { bytes: 0, closed: false, close: () => socket.destroy() }
  const socket = connect({ port, host: '127.0.0.1', onread: { buffer: Buffer.alloc(4_096), callback } })
  function callback(bytes) {
    if (stream.bytes === 0) socket.emit('answering')
    stream.bytes += bytes
    return true
  }
  socket.on('close', () => {
    stream.closed = true
  })
  socket.write(request(port))
  await once(socket, 'answering')
  return stream
}
