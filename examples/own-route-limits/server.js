/** Starts the app. SIGTERM and Ctrl-C end it as soon as its running responses have ended. */
import { createRateLimiter } from '@modelmount/core/limits'
import { createApp } from './app.js'

// Counts in memory. With `database: 'limits.db'` or `'postgres://…'`, several processes share the limits.
const limiter = await createRateLimiter({ limits: { requestsPerMinute: 30 } })
const server = createApp(limiter).listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () =>
  console.log(`Listening on http://127.0.0.1:${server.address().port}`),
)

process.once('SIGTERM', close)
process.once('SIGINT', close)

function close() {
  server.close(() => limiter.close())
}
