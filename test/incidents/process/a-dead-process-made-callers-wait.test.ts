/**
 * A model process was killed, and its record stayed in the runtime folder. Meanwhile its process id belonged to a
 * zombie, to another program or to another PID namespace. Callers waited five minutes for its memory.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { copyFile, mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createLlm, type Llm } from '@modelmount/core'
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { noiseModel } from '../../support/models.ts'
import { hasProc, noOrphan } from '../../support/processes.ts'

const models = emptyFolder()
const machines = emptyFolder()
let runtimeDir: string
let apps: Llm[] = []

async function startApp(): Promise<Llm> {
  const modelProcessPath = fileURLToPath(new URL('../../local-engine/full-machine.mjs', import.meta.url))
  const llm = await createLlm({
    models,
    local: { modelProcessPath, runtimeDir, parallel: 1, environment: ['FREE_BYTES'] },
  })
  apps.push(llm)
  return llm
}
const openMachine = async (): Promise<void> => {
  runtimeDir = await mkdtemp(join(machines, 'run-'))
}
const processOf = (llm: Llm): number => llm.loaded()[0]?.processId as number

beforeAll(async () => {
  await openMachine()
  for (const name of ['a', 'b']) await copyFile(noiseModel, join(models, `${name}.gguf`))
  process.env.FREE_BYTES = String(1e12)
  const llm = await startApp()
  await llm.load('a')
  const [{ sizeBytes } = { sizeBytes: 0 }] = llm.loaded()
  const processId = processOf(llm)
  await llm.unload('a')
  await noOrphan([processId])
  // Too little memory for the weights of both models.
  process.env.FREE_BYTES = String(sizeBytes + 2e6)
})

beforeEach(openMachine)

afterEach(async () => {
  const running = apps.flatMap((llm) => llm.loaded().flatMap(({ processId }) => processId ?? []))
  for (const llm of apps) await llm.close()
  apps = []
  await noOrphan(running)
})

/** Kills a busy model process, and changes the record that it leaves behind. */
async function leaveRecord(change: object): Promise<void> {
  const llm = await startApp()
  const answer = llm.chat('Hello', { model: 'a', temperature: 0, stream: true })[Symbol.asyncIterator]()
  await answer.next()
  const record = (): string => join(runtimeDir, readdirSync(runtimeDir).find(isRecord) as string)
  await expect.poll(() => JSON.parse(readFileSync(record(), 'utf8')).state).toBe('busy')
  process.kill(processOf(llm), 'SIGKILL')
  const drain = async (): Promise<void> => {
    while (!(await answer.next()).done);
  }
  await expect(drain()).rejects.toMatchObject({ code: 'upstream' })
  const left = JSON.parse(readFileSync(record(), 'utf8'))
  writeFileSync(record(), JSON.stringify({ ...left, ...change }))
}
const isRecord = (name: string): boolean => name.endsWith('.json')

/** Starts a process whose parent does not collect its exit status. Returns its id once it has ended. */
async function startZombie(): Promise<number> {
  // The shell would collect the status of a child that ends before `exec`; `sleep` collects none.
  const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void parent.kill('SIGKILL'))
  const [line] = await once(createInterface({ input: parent.stdout }), 'line')
  await expect.poll(() => readFileSync(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n')
  process.kill(Number(line), 'SIGKILL')
  await expect.poll(() => readFileSync(`/proc/${line}/stat`, 'utf8')).toContain(') Z ')
  return Number(line)
}

function startProgram(): number {
  const program = spawn('sleep', ['600'])
  onTestFinished(() => void program.kill('SIGKILL'))
  return program.pid as number
}

test.skipIf(!hasProc).each<[what: string, change: () => object | Promise<object>]>([
  ['is a zombie', async () => ({ processId: await startZombie() })],
  ['belongs to another program', () => ({ processId: startProgram() })],
  ['is from another PID namespace', () => ({ namespace: 'pid:[1]' })],
  ['is from before a restart of the machine', () => ({ processId: 1, since: 0, state: 'loading' })],
])(
  'a call does not wait for the memory of a dead process whose id %s',
  async (_what, change) => {
    await leaveRecord(await change())
    const llm = await startApp()

    const signal = AbortSignal.timeout(20_000)
    const { usage } = await llm.chat('Hello', { model: 'b', maxTokens: 3, signal })

    expect(usage.outputTokens).toBe(3)
  },
  60_000,
)
