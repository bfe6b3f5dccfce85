/** Starts the app. SIGTERM and Ctrl-C end it as soon as its running answers have ended. */
import { mkdir } from 'node:fs/promises'
import { createLlm } from '@modelmount/core'
import { createApp } from './app.js'

const { DATA = 'data', HOST = '127.0.0.1', JWT_SECRET = '', PORT = '3000' } = process.env
if (JWT_SECRET.length < 32)
  throw new Error('JWT_SECRET: expected the secret of the site, of at least 32 characters.')

await mkdir(DATA, { recursive: true })
const llm = await createLlm({
  auth: 'keys',
  database: `${DATA}/modelmount.db`, // or 'postgres://…', for several machines
  prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } },
})
const app = createApp(llm, new TextEncoder().encode(JWT_SECRET))
const server = app.listen(Number(PORT), HOST, () =>
  console.log(`Listening on http://${HOST}:${server.address().port}`),
)

process.once('SIGTERM', close)
process.once('SIGINT', close)

async function close() {
  server.close() // no new connections
  await llm.close({ drain: '10s' })
  server.closeIdleConnections() // those that had a response when the server closed
}
