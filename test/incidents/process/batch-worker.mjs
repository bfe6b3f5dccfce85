/**
 * An app that runs batches, and kills itself at a statement: `node batch-worker.mjs DATABASE NUMBER`. Statements are
 * counted from the first one that stores a result.
 */
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import pg from 'pg'

const [, , database, number] = process.argv
let count = -1
const { query } = pg.Client.prototype
pg.Client.prototype.query = function (...given) {
  const text = typeof given[0] === 'string' ? given[0] : given[0].text
  if (count >= 0 || text.includes('remaining = remaining - 1')) count++
  if (count === Number(number)) process.kill(process.pid, 'SIGKILL')
  return query.apply(this, given)
}
await createLlm({
  ...{ engine: scriptedEngine('one two three'), database, models: [], batches: { concurrency: 1 } },
  prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } },
})
// The app has no server that keeps it running.
setInterval(() => {}, 60_000)
