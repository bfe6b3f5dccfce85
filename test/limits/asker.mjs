// One of several processes that share a rate limit. It sends its requests and reports how many it sent
// (`asked`) and how many were admitted.
import { createRateLimiter } from '@modelmount/core/limits'
import { redisLimiterStore } from '@modelmount/core/redis'
import { createClient } from 'redis'

const [location, limit, parallel, requests] = process.argv.slice(2)
const client =
  location.startsWith('redis:') && createClient({ socket: { path: location.slice('redis:'.length) } })
if (client) await client.connect()
const limiter = await createRateLimiter({
  limits: { requestsPerMinute: Number(limit) },
  ...(client ? { limiterStore: redisLimiterStore(client) } : { database: location }),
})
process.send('ready')
process.once('message', async () => {
  let [asked, admitted] = [0, 0]
  const pauseMs = 20_000 / (Number(requests) / Number(parallel))
  const started = performance.now()
  const ask = async () => {
    for (let turn = 0; asked < Number(requests); turn++) {
      asked++
      await limiter.reserve([{ id: 'everybody' }], { requests: 1, tokens: 0 }).then(
        () => admitted++,
        (error) => {
          if (error.code !== 'rate_limit') throw error
        },
      )
      // Requests are spread over 20 s, so that they also use the tokens that refill the bucket meanwhile.
      const due = started + (turn + 1) * pauseMs
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())))
    }
  }
  await Promise.all(Array.from({ length: Number(parallel) }, ask))
  process.send({ asked, admitted })
  await limiter.close()
  if (client) await client.close()
  process.disconnect()
})
