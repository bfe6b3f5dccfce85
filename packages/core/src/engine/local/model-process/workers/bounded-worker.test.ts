import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { invalidRequest, type LlmError } from '../../../../errors.ts'
import { BoundedWorker, startProcess } from './bounded-worker.ts'

const folder = mkdtempSync(join(tmpdir(), 'workers-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Jobs that misbehave. The worker returns any other job as its result. */
const jobs = `{
  memory() { for (const all = []; ; ) all.push(Array(100_000).fill(0.5)) },
  time() { for (;;); },
  throw() { throw new Error('Broken.') },
  exit() { process.exit(3) },
  kill() { process.kill(process.pid, 'SIGKILL') },
  crash() { process.kill(process.pid, 'SIGSEGV') },
}`
const thread = write(
  'thread.mjs',
  `import { parentPort } from 'node:worker_threads'
  const jobs = ${jobs}
  parentPort.on('message', (job) => parentPort.postMessage(jobs[job] ? jobs[job]() : job))`,
)
const child = write(
  'child.mjs',
  `const jobs = ${jobs}
  process.stdin.on('close', () => process.exit()).resume()
  process.on('message', (job) => process.send(jobs[job] ? jobs[job]() : job))`,
)

function write(name: string, source: string): URL {
  const path = join(folder, name)
  writeFileSync(path, source)
  return pathToFileURL(path)
}

const bounds = {
  deadlineMs: 20_000,
  memoryMb: 32,
  limitError: (what: string): LlmError => invalidRequest(`too much ${what}`),
  crashError: (): LlmError => invalidRequest('crashed'),
}
const { signal } = new AbortController()

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

  await expect(worker.run(job, signal)).rejects.toMatchObject(error)
  expect(await worker.run('next', signal)).toBe('next')
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

    await expect(worker.run(job, signal)).rejects.toMatchObject(error)
    expect(await worker.run('next', signal)).toBe('next')
  },
)

test.each([
  ['thread', undefined],
  ['process', startProcess],
])('reports the file name if the file of a %s is missing', async (_what, start) => {
  const worker = new BoundedWorker<string, string>(new URL('gone.mjs', thread), bounds, start)
  worker.start()

  await expect(worker.run('any', signal)).rejects.toMatchObject({
    code: 'internal',
    message: 'The installation is incomplete: gone.mjs is missing.',
    cause: expect.any(Error),
  })
})

test('ends a job that exceeds its deadline', async () => {
  const worker = new BoundedWorker<string, string>(thread, { ...bounds, deadlineMs: 200 })

  await expect(worker.run('time', signal)).rejects.toMatchObject({ message: 'too much time' })
})

test('a restart ends the running job only', async () => {
  const worker = new BoundedWorker<string, string>(thread, bounds)
  const endless = worker.run('time', signal)
  const next = worker.run('next', signal)
  await new Promise((resolve) => setImmediate(resolve))

  worker.restart()

  await expect(endless).rejects.toMatchObject({ code: 'internal' })
  expect(await next).toBe('next')
})

test('the deadline of a job replaces that of the worker', async () => {
  const worker = new BoundedWorker<string, string>(thread, bounds)

  await expect(worker.run('time', signal, 100)).rejects.toMatchObject({ message: 'too much time' })
})
