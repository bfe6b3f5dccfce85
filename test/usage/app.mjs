/**
 * An app process for tests that kill it: `node app.mjs DATABASE SETTINGS`. It runs 100 streams of one caller,
 * each one token longer than the previous one up to `words` tokens, and sends the id of each stream that has
 * ended.
 */
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
