/** An app whose operators see each call: metrics, traces, logs and health. */
import { createLlm } from '@modelmount/core'
import { registerMetrics } from '@modelmount/core/metrics'
import { registerTracing } from '@modelmount/core/tracing'
import { pino } from 'pino'
import { collectDefaultMetrics, register } from 'prom-client'
import { createApp, createMetricsApp } from './app.js'
import { startTracing } from './tracing.js'

const { HOST = '127.0.0.1', PORT = '3000', METRICS_PORT = '9464' } = process.env
const { DATABASE_URL, OTEL_TRACES_EXPORTER = 'none' } = process.env

const logger = pino()
const tracing = startTracing(OTEL_TRACES_EXPORTER)
const llm = await createLlm({
  logger,
  accessLog: true,
  // With a database, callers need an API key. Without one, they must be on this machine.
  ...(DATABASE_URL && { auth: 'keys', database: DATABASE_URL }),
})
collectDefaultMetrics()
registerMetrics(llm, register)
registerTracing(llm)

const servers = [
  createApp(llm).listen(Number(PORT), HOST, () => logger.info(servers[0].address(), 'app listens')),
  createMetricsApp(register).listen(Number(METRICS_PORT), HOST, () =>
    logger.info(servers[1].address(), 'metrics listen'),
  ),
]

process.once('SIGTERM', close)
process.once('SIGINT', close)

async function close() {
  // `/readyz` answers 503 from now on, so that a balancer sends the next calls elsewhere.
  await llm.close({ admitFor: '5s', drain: '30s' })
  for (const server of servers) server.close()
  await tracing.shutdown()
  logger.info('closed')
}
