import { serve } from '@hono/node-server'
import { createLlm, routesFor } from '@modelmount/core'
import { toFetchHandler } from '@modelmount/core/http'
import { Hono } from 'hono'

const llm = await createLlm({ auth: 'host' })
const handle = toFetchHandler(routesFor(), llm, {
  // Replace this by the session of your app.
  authenticate: (request) => (request.headers.has('cookie') ? { id: 'visitor' } : undefined),
})

const app = new Hono()
app.get('/', (c) => c.text('my own route'))
app.mount('/llm', handle) // removes the prefix

const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  process.stdout.write(`http://127.0.0.1:${port}\n`)
})

process.once('SIGTERM', async () => {
  server.close()
  await llm.close({ drain: '10s' })
  server.closeIdleConnections()
})
