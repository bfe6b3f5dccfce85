/** Starts the app. SIGTERM and Ctrl-C end it as soon as its running answers have ended. */
import { mkdir } from 'node:fs/promises'
import { createLlm } from '@modelmount/core'
import { createApp } from './app.js'

/** In your app, they are in a database. */
const tickets = new Map(
  [
    { id: 'ticket-1', text: 'I was charged twice in October.' },
    { id: 'ticket-2', text: 'The app closes when I open my profile.' },
    { id: 'ticket-3', text: 'How can I change my password?' },
  ].map((ticket) => [ticket.id, ticket]),
)

const { DATA = 'data', PORT = '3000' } = process.env
await mkdir(DATA, { recursive: true })
const llm = await createLlm({ database: `${DATA}/modelmount.db` })
const { app, classification } = await createApp(llm, tickets)
const server = app.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`Listening on http://127.0.0.1:${server.address().port}`),
)

process.once('SIGTERM', close)
process.once('SIGINT', close)

async function close() {
  server.close() // no new connections
  await classification.close()
  await llm.close({ drain: '10s' }) // Gives back the requests of batches. They run again after the next start.
  server.closeIdleConnections() // those that had a response when the server closed
}
