/** An app process: `node ledger-writer.mjs DATABASE CALLER CALLS` makes as many calls, eight at a time. */
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'

const [, , database, id, calls] = process.argv
const { generate: _, ...rest } = scriptedEngine('')
const engine = { ...rest, generate: (...call) => scriptedEngine('One two three').generate(...call) }
const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const llm = await createLlm({ engine, database, prices })
const caller = { id, spendingLimit: { usd: 1_000, period: 'day' } }

let next = 0
const client = async () => {
  while (next++ < Number(calls)) await llm.chat('Hello', { model: 'tiny', maxTokens: 9, caller })
}
await Promise.all(Array.from({ length: 8 }, client))
await llm.close()
