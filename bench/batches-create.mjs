// Creates a batch of many small requests over HTTP. Meanwhile, it measures the memory and the event loop of the server, and
// interactive calls.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createLlm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { hasPostgres, startPostgres } from '../test/support/embedded-postgres.mjs'
import { describeMachine, median, print, printTable } from './support/measure.mjs'

const { values: options } = parseArgs({
  options: {
    items: { type: 'string', default: '100000' },
    /** `sqlite` or `postgres`. @default both */
    database: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    /** Set in the process of the server: the location of its database. */
    serve: { type: 'string' },
  },
})
const [items, rounds] = [Number(options.items), Number(options.rounds)]

if (options.serve === undefined) await measureAll()
else await serve(options.serve)

async function measureAll() {
  print(`## Creating a batch of ${items} requests\n`)
  await describeMachine()
  const rows = []
  if (options.database !== 'postgres') {
    const folder = mkdtempSync(join(tmpdir(), 'batches-create-'))
    for (let round = 0; round < rounds; round++)
      rows.push(['SQLite', ...(await measure(join(folder, `${round}.db`)))])
    rmSync(folder, { recursive: true })
  }
  if (options.database !== 'sqlite' && hasPostgres) {
    const server = await startPostgres()
    for (let round = 0; round < rounds; round++) rows.push(['PostgreSQL', ...(await measure(server.url))])
    await server.stop()
  }
  print('')
  printTable(
    [
      ...['database', 'time', 'body', 'memory, most', 'event loop p99', 'max'],
      ...['interactive calls', 'median', 'most', 'before'],
    ],
    rows,
  )
}

async function measure(database) {
  const child = fork(fileURLToPath(import.meta.url), ['--serve', database], { execArgv: ['--expose-gc'] })
  const stopped = new AbortController()
  let interactive
  try {
    const [port] = await once(child, 'message')
    const url = `http://127.0.0.1:${port}/v1/messages`
    const probe = async (name) => {
      child.send(name)
      return (await once(child, 'message'))[0]
    }
    const alone = []
    for (let call = 0; call < 50; call++) alone.push(await ask(url))
    await probe('begin')
    const calls = []
    interactive = (async () => {
      while (!stopped.signal.aborted) {
        calls.push(await ask(url))
        await sleep(20)
      }
    })()
    let bytes = 0
    async function* body() {
      const encoder = new TextEncoder()
      let text = '{"requests":['
      for (let index = 0; index < items; index++) {
        text += `${index > 0 ? ',' : ''}${JSON.stringify(requestOf(index))}`
        if (text.length < 64 * 1024 && index < items - 1) continue
        const chunk = encoder.encode(index === items - 1 ? `${text}]}` : text)
        bytes += chunk.length
        text = ''
        yield chunk
      }
    }
    const from = performance.now()
    const response = await fetch(`${url}/batches`, { method: 'POST', body: body(), duplex: 'half' })
    const { request_counts: counts, error } = await response.json()
    const seconds = (performance.now() - from) / 1_000
    stopped.abort()
    await interactive
    if (counts?.processing !== items) throw new Error(`The batch was not created: ${JSON.stringify(error)}`)
    const { memory, p99, max } = await probe('end')
    return [
      `${seconds.toFixed(1)} s`,
      `${(bytes / 2 ** 20).toFixed(1)} MiB`,
      `+ ${(memory / 2 ** 20).toFixed(0)} MiB`,
      `**${p99.toFixed(1)} ms**`,
      `${max.toFixed(1)} ms`,
      String(calls.length),
      `${median(calls).toFixed(1)} ms`,
      `${Math.max(...calls).toFixed(1)} ms`,
      `${median(alone).toFixed(1)} ms`,
    ]
  } finally {
    stopped.abort()
    await interactive
    child.disconnect()
    await once(child, 'exit')
  }
}

/** Answers on loopback. Items do not run, so that only their creation is measured. */
async function serve(database) {
  const llm = await createLlm({
    engine: scriptedEngine('Hello there.'),
    models: [],
    database,
    batches: { run: false, maxQueuedRequests: 1e9 },
  })
  const server = createServer(toNodeHandler(routesFor(), llm)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const delay = monitorEventLoopDelay({ resolution: 1 })
  let before = 0
  let most = 0
  let timer
  process.on('message', (name) => {
    if (name === 'begin') {
      globalThis.gc()
      before = most = process.memoryUsage.rss()
      timer = setInterval(() => {
        most = Math.max(most, process.memoryUsage.rss())
      }, 10)
      delay.enable()
      delay.reset()
      process.send('begun')
    } else {
      clearInterval(timer)
      process.send({ memory: most - before, p99: delay.percentile(99) / 1e6, max: delay.max / 1e6 })
    }
  })
  process.once('disconnect', async () => {
    server.closeAllConnections()
    server.close()
    await llm.close()
    process.exit()
  })
  process.send(server.address().port)
}

async function ask(url) {
  const from = performance.now()
  const response = await fetch(url, {
    method: 'POST',
    body: JSON.stringify({
      model: 'scripted',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'Hello' }],
    }),
  })
  if (!response.ok) throw new Error(await response.text())
  await response.arrayBuffer()
  return performance.now() - from
}

function requestOf(index) {
  return {
    custom_id: `request-${index}`,
    params: {
      model: 'scripted',
      max_tokens: 64,
      messages: [
        {
          role: 'user',
          content: `Is ticket ${index} about billing, about a defect, or about something else?`,
        },
      ],
    },
  }
}
