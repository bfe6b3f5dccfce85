/** Starts the app. SIGTERM and Ctrl-C end it as soon as its running answers have ended. */
import { createLlm } from '@modelmount/core'
import { createApp } from './app.js'

const llm = await createLlm()
const server = createApp(llm).listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () =>
  console.log(`Listening on http://127.0.0.1:${server.address().port}`),
)

process.once('SIGTERM', close)
process.once('SIGINT', close)

async function close() {
  server.close() // no new connections
  await llm.close({ drain: '10s' })
  server.closeIdleConnections() // those that had a response when the server closed
}
