/** Starts the app that `next build` has built. SIGTERM and Ctrl-C end it as soon as its running answers have ended. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import next from 'next'

const hostname = '127.0.0.1'
const port = Number(process.env.PORT ?? 3000)
const app = next({ dev: false, dir: import.meta.dirname, hostname, port })
await app.prepare()
const server = createServer(app.getRequestHandler()).listen(port, hostname, () =>
  console.log(`Listening on http://${hostname}:${server.address().port}`),
)

process.once('SIGTERM', close)
process.once('SIGINT', close)

async function close() {
  const closed = once(server, 'close')
  server.close() // no new connections
  const llm = await globalThis.llm // undefined, if no route has been called
  await llm?.close({ drain: '10s' })
  server.closeIdleConnections() // those that had a response when the server closed
  await closed
  await app.close()
  process.exit() // Next.js keeps timers.
}
