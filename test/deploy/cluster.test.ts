/** Runs docs/operations/deploy/cluster/cluster.js with the app of these tests. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { root } from '../packaging/npm.ts'
import { emptyFolder } from '../support/empty-folder.ts'

vi.setConfig({ testTimeout: 60_000 })

const folder = emptyFolder()
const runtimeDir = join(folder, 'run')

beforeAll(() => {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  copyFileSync(join(root, 'docs/operations/deploy/cluster/cluster.js'), join(folder, 'cluster.js'))
  copyFileSync(join(root, 'test/deploy/app/server.js'), join(folder, 'server.js'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
})

// The check of the folder would follow this link.
afterAll(() => rmSync(join(folder, 'node_modules')))

/** Starts the cluster. `nextLine` resolves with the next line of any worker. */
function start() {
  const child = spawn(process.execPath, ['cluster.js'], {
    cwd: folder,
    env: {
      ...process.env,
      XDG_RUNTIME_DIR: runtimeDir,
      OLLAMA_MODELS: join(folder, 'models'),
      PORT: '0',
      WORKERS: '2',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const nextLine = async () => String((await lines.next()).value)
  return { child, nextLine, closed: once(child, 'close') }
}

const parseLine = (line: string) => {
  const [, id, port] = /^(\d+) listens on (\d+)$/.exec(line) ?? []
  return { id: Number(id), url: `http://127.0.0.1:${port}` }
}

test('workers share a port and one model process, a killed one is replaced, and SIGTERM drains all', async () => {
  const { child, nextLine, closed } = start()
  const workers = [parseLine(await nextLine()), parseLine(await nextLine())]
  const url = workers[0]?.url as string
  const chat = (body: object) =>
    fetch(`${url}/api/chat`, {
      method: 'POST',
      // Each connection goes to the next worker.
      headers: { connection: 'close' },
      body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hello' }], ...body }),
    })

  expect(new Set(workers.map((worker) => worker.url)).size).toBe(1)
  const answers = await Promise.all(Array.from({ length: 4 }, () => chat({ stream: false })))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const records = readdirSync(join(runtimeDir, 'modelmount')).filter((name) => name.endsWith('.json'))
  expect(records).toHaveLength(1)

  process.kill(workers[0]?.id as number, 'SIGKILL')
  expect(parseLine(await nextLine()).url).toBe(url)

  const format = { type: 'array', items: { enum: ['a', 'b'] }, minItems: 200 }
  const streams = await Promise.all([1, 2].map(() => chat({ format, options: { num_predict: 3_000 } })))
  child.kill('SIGTERM')
  const texts = await Promise.all(streams.map((stream) => stream.text()))

  for (const text of texts) expect(text.trim().split('\n').at(-1)).toContain('"done":true')
  expect(await closed).toEqual([0, null])
})
