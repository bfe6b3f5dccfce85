// Passes requests to another server and its responses back, with as little work as Node allows.
// Usage: node pipe.mjs http://127.0.0.1:8080
import { createServer, request } from 'node:http'

const target = process.argv[2]
const server = createServer((incoming, response) => {
  const { method, url, headers } = incoming
  // A new connection per call, because llama-server closes connections that it announces as kept alive.
  const outgoing = request(target + url, { method, headers, agent: false }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers)
    answer.pipe(response)
  })
  outgoing.on('error', () => response.destroy())
  incoming.pipe(outgoing)
})
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`Listening on http://127.0.0.1:${server.address().port}\n`)
})
process.once('disconnect', () => process.exit())
