/** An app of its own process, to be killed: streams of one caller without end. `node app.mjs DATABASE SETTINGS`. */
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'

const [, , database, settings] = process.argv
const { caller, prices, words } = JSON.parse(settings)
const engine = scriptedEngine('word '.repeat(words).trim(), { delayMs: 5 })
const llm = await createLlm({ engine, database, prices })
const { signal } = new AbortController()
const content = [{ type: 'text', text: 'Hi' }]
const request = {
  model: 'tiny',
  input: { kind: 'chat', messages: [{ role: 'user', content }] },
  maxTokens: words,
}

await Promise.allSettled(
  Array.from({ length: 100 }, async () => {
    for await (const event of await llm.generate(request, { signal, caller, stream: true }))
      process.send(event.type)
  }),
)
