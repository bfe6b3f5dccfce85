/** An app of its own process, to be killed: streams of one caller, each longer than the one before, which tell when they end. `node app.mjs DATABASE SETTINGS`. */
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'

const [, , database, settings] = process.argv
const { caller, prices, words } = JSON.parse(settings)
const engine = scriptedEngine('word '.repeat(words).trim(), { delayMs: 5 })
const llm = await createLlm({ engine, database, prices })
const { signal } = new AbortController()
const content = [{ type: 'text', text: 'Hi' }]
const input = { kind: 'chat', messages: [{ role: 'user', content }] }

await Promise.allSettled(
  Array.from({ length: 100 }, async (_, index) => {
    const request = { model: 'tiny', input, maxTokens: Math.min(index + 1, words) }
    const answer = await llm.generate(request, { signal, caller, stream: true })
    for await (const { type } of answer) if (type === 'end') process.send(answer.id)
  }),
)
