/** Starts the app. SIGTERM and Ctrl-C end it as soon as its running answers have ended. */
import { createLlm } from '@modelmount/core'
import { createApp } from './app.js'
import { PassageIndex } from './index.js'

const { EMBED_MODEL, RERANK_MODEL, CHAT_MODEL = 'tiny', PORT = '3000' } = process.env
if (!EMBED_MODEL || !RERANK_MODEL)
  throw new Error('EMBED_MODEL, RERANK_MODEL: expected the names of two models.')

const llm = await createLlm()
const index = new PassageIndex(llm, { embed: EMBED_MODEL, rerank: RERANK_MODEL })
await index.addFolder(`${import.meta.dirname}/documents`)
const server = createApp(llm, index, { chat: CHAT_MODEL }).listen(Number(PORT), '127.0.0.1', () =>
  console.log(`Listening on http://127.0.0.1:${server.address().port}`),
)

process.once('SIGTERM', close)
process.once('SIGINT', close)

async function close() {
  server.close() // no new connections
  await llm.close({ drain: '10s' })
  server.closeIdleConnections() // those that had a response when the server closed
}
