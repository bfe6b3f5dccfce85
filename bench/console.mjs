// Fills a database with many keys and calls. Then it measures the console: the answers of the routes that its pages call,
// the event loop of the app meanwhile, the first paint of pages in Chromium, and idle open pages.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { chromium } from 'playwright-core'
import { fillDatabase, fillTraffic, sqlite } from './support/fill-database.mjs'
import { describeMachine, print, printTable } from './support/measure.mjs'

const { values: options } = parseArgs({
  options: {
    keys: { type: 'string', default: '10000' },
    calls: { type: 'string', default: '1000000' },
    /** Requests per route. */
    rounds: { type: 'string', default: '20' },
    /** Seconds of each round with or without open pages. */
    idle: { type: 'string', default: '30' },
    /** Path of Chromium. Tests of the console unpack one into this folder. */
    chromium: { type: 'string', default: 'node_modules/.cache/modelmount/chromium/chromium' },
  },
})
const [keys, calls, rounds, idle] = [options.keys, options.calls, options.rounds, options.idle].map(Number)
const dayMs = 86_400_000

print(`## Console: ${keys} keys, ${calls} calls\n`)
await describeMachine()
print('')
const folder = mkdtempSync(join(tmpdir(), 'bench-console-'))
try {
  const path = join(folder, 'modelmount.db')
  await fill(path)
  const app = fork(new URL('support/console-app.mjs', import.meta.url), [path])
  const [{ url, secret }] = await once(app, 'message')
  const read = async () => {
    app.send('read')
    return (await once(app, 'message'))[0]
  }
  const session = await logIn(url, secret)
  await measureRoutes(url, session, read)
  await measurePages(url, session)
  await measureIdle(url, session, app)
  app.disconnect()
  await once(app, 'exit')
} finally {
  rmSync(folder, { recursive: true })
}

async function fill(path) {
  // Creates the tables.
  const llm = await createLlm({ engine: scriptedEngine(''), auth: 'keys', database: path })
  await llm.close()
  const { DatabaseSync } =
    process.getBuiltinModule?.('node:sqlite') ?? (await import('@photostructure/sqlite'))
  const database = new DatabaseSync(path)
  database.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000')
  const execute = async (sql) => database.exec(sql)
  const now = Date.now()
  await fillDatabase(execute, sqlite, { keys, calls, now })
  await fillTraffic(execute, { now })
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  for (const table of ['keys', 'calls', 'usage_days', 'traffic', 'traffic_times'])
    print(`${table}: ${database.prepare(`SELECT count(*) AS n FROM modelmount_${table}`).get().n} rows`)
  database.close()
  print('')
}

async function logIn(url, key) {
  const response = await fetch(`${url}session`, {
    method: 'POST',
    body: JSON.stringify({ key }),
    headers: { 'content-type': 'application/json' },
  })
  const [cookie] = response.headers.get('set-cookie').split(';')
  return { cookie }
}

async function measureRoutes(url, headers, read) {
  const today = new Date().toISOString()
  const daysAgo = (count) => new Date(Date.now() - count * dayMs).toISOString()
  const month = `from=${daysAgo(29).slice(0, 10)}&to=${today.slice(0, 10)}`
  const routes = [
    'keys?limit=50',
    'keys?limit=50&after=key_bench5000',
    'keys?limit=50&search=9999',
    'keys?limit=50&search=no+such+key',
    'keys?limit=50&status=expired',
    'keys/key_bench77',
    'keys/key_bench77/limits',
    'tiers',
    'limit-requests?limit=50',
    'traffic',
    'traffic?by=model',
    'traffic?by=key',
    `traffic?interval=hour&from=${daysAgo(6)}`,
    `traffic?interval=day&from=${daysAgo(29)}`,
    `traffic?interval=day&from=${daysAgo(29)}&by=model`,
    `traffic?interval=day&from=${daysAgo(29)}&by=key`,
    `traffic?interval=day&from=${daysAgo(29)}&key=key_bench77`,
    `usage?by=day&${month}`,
    `usage?by=model&order=cost&limit=200&${month}`,
    `usage?by=tenant&order=cost&limit=200&${month}`,
    `usage?by=key&order=cost&limit=200&${month}`,
    `usage?by=tenant&limit=1000&${month}`,
    `usage?by=key&limit=1000&${month}`,
    `usage?by=day&key=key_bench77&${month}`,
    'calls',
    'batches?limit=50',
    'audit?limit=50',
  ]
  await read()
  const rows = []
  for (const route of routes) {
    const times = []
    let bytes = 0
    for (let round = 0; round < rounds; round++) {
      const begun = performance.now()
      const response = await fetch(`${url}admin/${route}`, { headers })
      bytes = (await response.arrayBuffer()).byteLength
      if (!response.ok) throw new Error(`${route}: ${response.status}`)
      times.push(performance.now() - begun)
    }
    times.sort((a, b) => a - b)
    rows.push([route, ms(times[rounds >> 1]), ms(times.at(-1)), `${(bytes / 1_000).toFixed(1)} kB`])
  }
  const { p99Ms, maxMs } = await read()
  printTable(['route of the admin API', 'median', 'maximum', 'size'], rows)
  print(`\nEvent loop of the app meanwhile: p99 ${ms(p99Ms)}, maximum ${ms(maxMs)}.\n`)
}

async function measurePages(url, { cookie }) {
  const browser = await chromium.launch({
    executablePath: options.chromium,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  })
  const rows = []
  const [name, value] = cookie.split('=')
  for (const page of ['overview', 'keys', 'usage', 'live']) {
    const paints = []
    const ready = []
    for (let round = 0; round < 5; round++) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-US' })
      await context.addCookies([{ name, value, url }])
      const tab = await context.newPage()
      const begun = performance.now()
      await tab.goto(`${url}#/${page}`)
      await tab.locator('.main h1').waitFor()
      ready.push(performance.now() - begun)
      paints.push(
        await tab.evaluate(
          () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN,
        ),
      )
      await context.close()
    }
    const median = (list) => ms(list.sort((a, b) => a - b)[list.length >> 1])
    rows.push([page, median(paints), ms(paints.at(-1)), median(ready)])
  }
  await browser.close()
  printTable(['page', 'first paint, median of 5', 'maximum', 'heading there, median'], rows)
  print('')
}

/** Ten open pages of live calls, with nothing to show, in turn with none. */
async function measureIdle(url, headers, app) {
  const cpuOf = async (seconds) => {
    app.send('idle')
    await once(app, 'message')
    await sleep(seconds * 1_000)
    app.send('idle')
    return (await once(app, 'message'))[0].cpuMs / (seconds * 10)
  }
  const rows = []
  for (let round = 0; round < 2; round++) {
    const without = await cpuOf(idle)
    const left = new AbortController()
    const streams = await Promise.all(
      Array.from({ length: 10 }, () => fetch(`${url}admin/events`, { headers, signal: left.signal })),
    )
    const readers = streams.map(async ({ body }) => {
      for await (const _ of body);
    })
    await cpuOf(2)
    const open = await cpuOf(idle)
    left.abort()
    await Promise.allSettled(readers)
    await cpuOf(2)
    rows.push([
      `${round + 1}`,
      ...[without, open, open - without].map((percent) => `${percent.toFixed(2)} %`),
    ])
  }
  printTable(
    [`round of ${idle} s each`, 'no open page', 'ten idle open pages', 'difference, of a core'],
    rows,
  )
}

function ms(value) {
  return `${value.toFixed(1)} ms`
}
