// The app of `prometheus.test.ts`, in a child process, so that the load generator does not delay its event loop.
// It sends its URL. For each message, it pulls a model, and sends the ids of its model processes.
import { createLlm } from '@modelmount/core'
import { fleetEngine } from '@modelmount/core/fleet'
import { llmRouter, metricsRouter } from '@modelmount/express'
import express from 'express'

const [models, registry, replica] = process.argv.slice(2)
const llm = await createLlm({
  models,
  database: `${models}/app.db`,
  prices: { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } },
  modelLimits: { limited: { requestsPerMinute: 1 } },
  store: { privateRegistries: [registry] },
  engines: { fleet: fleetEngine({ replicas: [replica], models: ['small'] }) },
})
// `plain` and `limited` are copies of the built-in model, so that they have labels of their own.
for (const name of ['plain', 'limited']) await llm.models.copy('tiny', name)
for (const name of ['tiny', 'plain']) await llm.load(name)

const app = express().use(metricsRouter(llm), llmRouter(llm))
const server = app.listen(0, '127.0.0.1', () => process.send(`http://127.0.0.1:${server.address().port}`))
process.on('message', async () => {
  for await (const _ of llm.models.pull(`${registry}/library/small`, { insecure: true }));
  process.send(llm.loaded().flatMap(({ processId }) => processId ?? []))
})
process.on('disconnect', () => llm.close().then(() => process.exit()))
