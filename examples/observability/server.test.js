/** Starts the server as `npm start` does, reads what it reports, and ends it with SIGTERM. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

const output = []
let app
let url
let metricsUrl

/** Lines of the logger. The exporter prints spans in between. */
const logLines = () => output.filter((line) => line.startsWith('{"level"')).map((line) => JSON.parse(line))

const portOf = (message) =>
  vi.waitFor(
    () => logLines().find(({ msg }) => msg === message)?.port ?? Promise.reject(new Error(message)),
    { timeout: 20_000 },
  )

beforeAll(async () => {
  app = spawn(process.execPath, ['server.js'], {
    cwd: import.meta.dirname,
    env: { ...process.env, PORT: '0', METRICS_PORT: '0', OTEL_TRACES_EXPORTER: 'console' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  createInterface({ input: app.stdout }).on('line', (line) => output.push(line))
  url = `http://127.0.0.1:${await portOf('app listens')}`
  metricsUrl = `http://127.0.0.1:${await portOf('metrics listen')}/metrics`
}, 30_000)

afterAll(() => void app.kill('SIGKILL'))

test('a call is in the metrics, in a trace and in the log', async () => {
  const response = await fetch(`${url}/api/greeting`)
  expect(await response.json()).toEqual({ greeting: 'Hello! How can I help you?' })

  const metrics = await (await fetch(metricsUrl)).text()
  expect(metrics).toMatch(/^modelmount_decode_tokens_total\{model="tiny:latest"\} [1-9]/m)
  expect(metrics).toMatch(/^modelmount_time_to_first_token_seconds_count\{model="tiny:latest"\} 1$/m)
  expect(metrics).toMatch(/^nodejs_eventloop_lag_seconds /m)
  const names = output.flatMap((line) => /^ {2}name: '(.*)',$/.exec(line)?.[1] ?? [])
  expect(names).toEqual(expect.arrayContaining(['chat tiny', 'load', 'prefill', 'decode']))
  const traces = new Set(output.flatMap((line) => /^ {2}traceId: '(.*)',$/.exec(line)?.[1] ?? []))
  expect(traces.size).toBe(1)
  expect(logLines().find(({ msg }) => msg === 'call ended')).toMatchObject({ model: 'tiny:latest' })
})

test('the app is ready until it gets SIGTERM, and then lets answers end', async () => {
  expect(await (await fetch(`${url}/readyz`)).text()).toBe('ok')
  const closed = once(app, 'close')

  app.kill('SIGTERM')
  await vi.waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(503), { timeout: 4_000 })
  const late = await fetch(`${url}/api/greeting`)

  expect(late.status).toBe(200)
  expect(await closed).toEqual([0, null])
}, 60_000)
