/** A server process for tests that kill it: `node server.mjs DATABASE SETTINGS`. It sends its URL. */
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'

const [, , database, settings] = process.argv
const { caller, prices, words } = JSON.parse(settings)
const engine = scriptedEngine('word '.repeat(words).trim(), { delayMs: 3 })
const llm = await createLlm({ engine, database, prices, auth: 'host' })
const server = express()
  .use(llmRouter(llm, { authenticate: () => caller }))
  .listen(0, '127.0.0.1', () => process.send(`http://127.0.0.1:${server.address().port}`))
