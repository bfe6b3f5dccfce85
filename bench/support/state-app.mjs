// An app process of `state-costs.mjs`: on a message, it makes calls for some seconds and replies with their number.
import { once } from 'node:events'
import { callOnce, openApp } from './state-calls.mjs'

const { database, redisPath, concurrency, secrets } = JSON.parse(process.argv[2])
const app = await openApp({ database, redisPath })
// The first calls open the connections, and create the rows of the keys.
await Promise.all(secrets.slice(0, concurrency).map((secret) => callOnce(app.llm, secret)))
process.send('ready')
const [{ seconds }] = await once(process, 'message')
const end = performance.now() + seconds * 1_000
let calls = 0
let failed = 0
await Promise.all(
  Array.from({ length: concurrency }, async () => {
    while (performance.now() < end)
      await callOnce(app.llm, secrets[calls++ % secrets.length]).catch(() => void failed++)
  }),
)
process.send({ calls: calls - failed, failed })
// Until its CPU time is read.
await once(process, 'message')
await app.close()
process.disconnect()
