/**
 * A server process for tests that kill it: `node server.mjs DATABASE SETTINGS`. It sends its URL. With the setting
 * `models`, a folder, it runs the built-in model. On each message, it kills its model process, and sends the number of
 * processes that it has killed. The header `x-caller` chooses one of the callers by its index.
 */
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'

const [, , database, settings] = process.argv
const { callers, prices, words, models } = JSON.parse(settings)
const engine = models ? undefined : scriptedEngine('word '.repeat(words).trim(), { delayMs: 3 })
const llm = await createLlm({ ...(engine ? { engine } : { models }), database, prices, auth: 'host' })
process.on('message', () => {
  let killed = 0
  for (const { processId } of llm.loaded())
    try {
      process.kill(processId, 'SIGKILL')
      killed++
    } catch {
      // Another app has killed it, or it has not started yet.
    }
  process.send(killed)
})
const server = express()
  .use(llmRouter(llm, { authenticate: ({ headers }) => callers[headers['x-caller'] ?? 0] }))
  .listen(0, '127.0.0.1', () => process.send(`http://127.0.0.1:${server.address().port}`))
