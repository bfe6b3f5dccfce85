import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { invalidRequest, type LlmError } from '../../../../errors.ts'
import { BoundedWorker, startProcess } from './bounded-worker.ts'
import { CpuMeter } from './cpu-meter.ts'

const folder = mkdtempSync(join(tmpdir(), 'workers-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Jobs that misbehave. The worker returns any other job as its result. */
const jobs = `{
  memory() { for (const all = []; ; ) all.push(Array(100_000).fill(0.5)) },
  time() { for (;;); },
  throw() { throw new Error('Broken.') },
  exit() { process.exit(3) },
  kill() { process.kill(process.pid, 'SIGKILL') },
  /** Uses 70 ms of CPU time, and is then not given a core any more. */
  starve() {
    const spentNs = () => (process.cpuUsage(), Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]))
    for (const end = spentNs() + 70e6; spentNs() < end; );
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  },
  stall() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) },
  sleep() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400); return 'awake' },
  crash() { process.kill(process.pid, 'SIGSEGV') },
}`
const thread = write(
  'thread.mjs',
  `import { readFileSync } from 'node:fs'
  import { serveJobs } from '${new URL('../../../../../dist/engine/local/model-process/workers/serve-jobs.js', import.meta.url)}'
  const jobs = ${jobs}
  serveJobs((job) => jobs[job] ? jobs[job]() : job)`,
)
const child = write(
  'child.mjs',
  `const jobs = ${jobs}
  process.stdin.on('close', () => process.exit()).resume()
  process.on('message', (job) => {
    process.send({ type: 'started', cpuMs: 0 })
    process.send({ type: 'ended', result: jobs[job] ? jobs[job]() : job })
  })`,
)

function write(name: string, source: string): URL {
  const path = join(folder, name)
  writeFileSync(path, source)
  return pathToFileURL(path)
}

const bounds = {
  memoryMb: 32,
  limitError: (what: string): LlmError => invalidRequest(`too much ${what}`),
  crashError: (): LlmError => invalidRequest('crashed'),
}
const { signal } = new AbortController()
const meterFor = (limitMs = 20_000): CpuMeter => new CpuMeter(limitMs)

const internal = { code: 'internal', message: 'Something went wrong inside the server.' }

test.each([
  ['memory', { message: 'too much memory' }],
  ['throw', { ...internal, cause: expect.objectContaining({ message: 'Broken.' }) }],
  [
    'exit',
    { ...internal, cause: expect.objectContaining({ message: expect.stringContaining('exit code 3') }) },
  ],
])('reports a thread that ends by "%s", and runs the next job in a new thread', async (job, error) => {
  const worker = new BoundedWorker<string, string>(thread, bounds)

  await expect(worker.run(job, signal, meterFor())).rejects.toMatchObject(error)
  expect(await worker.run('next', signal, meterFor())).toBe('next')
})

test.skipIf(process.platform === 'win32').each([
  ['kill', { message: 'too much memory' }],
  ['crash', { message: 'crashed' }],
  [
    'throw',
    { ...internal, cause: expect.objectContaining({ message: expect.stringContaining('exit code 1') }) },
  ],
  [
    'exit',
    { ...internal, cause: expect.objectContaining({ message: expect.stringContaining('exit code 3') }) },
  ],
])(
  'reports the end of a child process by "%s", and runs the next job in a new child process',
  async (job, error) => {
    const worker = new BoundedWorker<string, string>(child, { ...bounds, idleMs: 0 }, startProcess)

    await expect(worker.run(job, signal, meterFor())).rejects.toMatchObject(error)
    expect(await worker.run('next', signal, meterFor())).toBe('next')
  },
)

test.each([
  ['thread', undefined],
  ['process', startProcess],
])('reports the file name if the file of a %s is missing', async (_what, start) => {
  const worker = new BoundedWorker<string, string>(new URL('gone.mjs', thread), bounds, start)
  worker.start()

  await expect(worker.run('any', signal, meterFor())).rejects.toMatchObject({
    code: 'internal',
    message: 'The installation is incomplete: gone.mjs is missing.',
    cause: expect.any(Error),
  })
})

test('ends a job that has used up its CPU time', async () => {
  const worker = new BoundedWorker<string, string>(thread, bounds)
  const meter = meterFor(200)

  await expect(worker.run('time', signal, meter)).rejects.toMatchObject({ message: 'too much time' })
  expect(meter.remainingMs).toBeLessThanOrEqual(0)
  expect(meter.spentMs).toBeLessThan(2_000)
})

test.runIf(process.platform === 'linux')('time in which a job does not run is not CPU time', async () => {
  const worker = new BoundedWorker<string, string>(thread, bounds)
  const meter = meterFor(200)

  expect(await worker.run('sleep', signal, meter)).toBe('awake')
  // The job takes about a millisecond. Linux updates the CPU time of other threads each 10 ms at worst.
  expect(meter.spentMs).toBeLessThan(8)
})

test.runIf(process.platform === 'linux')(
  'a job that does not run for twenty times its limit ends with an error of the server',
  async () => {
    const worker = new BoundedWorker<string, string>(thread, bounds)

    await expect(worker.run('stall', signal, meterFor(100))).rejects.toMatchObject({
      code: 'overloaded',
      details: { retryAfterMs: expect.any(Number) },
    })
  },
)

test.runIf(process.platform === 'linux')(
  'a job that has used most of its CPU time in that time ends with an error of its text',
  async () => {
    const worker = new BoundedWorker<string, string>(thread, bounds)

    await expect(worker.run('starve', signal, meterFor(100))).rejects.toMatchObject({
      message: 'too much time',
    })
  },
)

test('the start of a worker does not count towards the CPU time of a job', async () => {
  const slowly = write(
    'slowly.mjs',
    `for (const end = performance.now() + 500; performance.now() < end; );
    await import('${thread}')`,
  )
  const worker = new BoundedWorker<string, string>(slowly, bounds)

  expect(await worker.run('any', signal, meterFor(200))).toBe('any')
})

test('a restart ends the running job only', async () => {
  const worker = new BoundedWorker<string, string>(thread, bounds)
  const endless = worker.run('time', signal, meterFor())
  const next = worker.run('next', signal, meterFor())
  await new Promise((resolve) => setImmediate(resolve))

  worker.restart()

  await expect(endless).rejects.toMatchObject({ code: 'internal' })
  expect(await next).toBe('next')
})
