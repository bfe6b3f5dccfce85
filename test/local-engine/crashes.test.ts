import { execFileSync } from 'node:child_process'
import { chmod, copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type Llm } from '@modelmount/core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { forgeries } from '../support/forgeries.ts'
import { noiseModel } from '../support/models.ts'

let folder: string
let llm: Llm

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'models-'))
  await copyFile(noiseModel, join(folder, 'noise.gguf'))
})

afterAll(() => rm(folder, { recursive: true }))

beforeEach(async () => {
  llm = await createLlm({ models: folder })
})

afterEach(() => llm.close())

const forged = (name: string): Buffer =>
  (forgeries.find((one) => one.name === name) as (typeof forgeries)[number]).bytes()
/** Another choice of tokens may end the answer early. */
const greedy = { temperature: 0 }
const short = { model: 'noise', maxTokens: 5, ...greedy }
const processId = (): number => llm.loaded()[0]?.processId ?? Number.NaN
const kill = (): boolean => process.kill(processId(), 'SIGKILL')

describe('a model file that crashes the loader', () => {
  const crash = () => llm.chat('Hello', { ...short, model: 'bad' })

  test('is rejected before the load on every call, if its metadata shows the fault', async () => {
    await writeFile(join(folder, 'bad.gguf'), forged('attention.head_count = 0'))

    for (let time = 0; time < 3; time++)
      await expect(crash()).rejects.toMatchObject({
        code: 'upstream',
        message: expect.stringContaining('cannot be used: it has attention with a head_count of 0'),
      })

    expect(llm.loaded()).toEqual([])
  })

  test('gives an upstream error, and after two crashes is not loaded again until it changes', async () => {
    await writeFile(join(folder, 'bad.gguf'), forged('no feed_forward_length'))

    await expect(crash()).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('SIGABRT'),
    })
    await expect(crash()).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('SIGABRT'),
    })
    await expect(crash()).rejects.toMatchObject({
      message: expect.stringContaining('crashed the engine 2 times'),
    })
    const other = await llm.chat('Hello', short)
    await copyFile(noiseModel, join(folder, 'bad.gguf'))
    const mended = await crash()

    expect(other.usage.outputTokens).toBe(5)
    expect(mended.usage.outputTokens).toBe(5)
  })
})

describe('a model process that is killed', () => {
  const long = 'word '.repeat(3_900)

  async function read(prompt: string, maxTokens: number, onPiece: (count: number) => void): Promise<string> {
    let count = 0
    const request = {
      model: 'noise',
      input: {
        kind: 'chat' as const,
        messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: prompt }] }],
      },
      maxTokens,
      sampling: greedy,
    }
    const generation = await llm.generate(request, { signal: new AbortController().signal, stream: true })
    try {
      for await (const event of generation) {
        if (event.type === 'end') return event.finishReason
        onPiece(count++)
      }
      return 'nothing'
    } catch (error) {
      return (error as { code: string }).code
    }
  }

  test('during prefill ends the call with an upstream error', async () => {
    const end = await read(long, 5, (count) => {
      if (count === 0) kill()
    })
    const next = await llm.chat('Hello', short)

    expect(end).toBe('upstream')
    expect(next.usage.outputTokens).toBe(5)
  })

  test('at the last token ends the call normally or with an upstream error', async () => {
    let hasKilled = false
    const end = await read('Hello', 20, (count) => {
      if (count < 20) return
      kill()
      hasKilled = true
    })
    const next = await llm.chat('Hello', short)

    expect(hasKilled).toBe(true)
    expect(['length', 'upstream']).toContain(end)
    expect(next.usage.outputTokens).toBe(5)
  })
})

describe('the runtime folder', () => {
  let temporary: string

  beforeEach(async () => {
    temporary = await mkdtemp(join(tmpdir(), 't-'))
    vi.stubEnv('TMPDIR', temporary)
  })

  afterEach(async () => {
    vi.unstubAllEnvs()
    await rm(temporary, { recursive: true, force: true })
  })

  /** Runs `work` with an app that uses this runtime folder. */
  async function within<T>(runtimeDir: string, work: (llm: Llm) => Promise<T>): Promise<T> {
    const app = await createLlm({ models: folder, local: { runtimeDir } })
    try {
      return await work(app)
    } finally {
      await app.unload('noise')
      await app.close()
    }
  }

  test('may be deleted while a model is loaded, and is empty after the model is unloaded', async () => {
    const runtimeDir = join(temporary, 'run')

    const tokens = await within(runtimeDir, async (app) => {
      const first = await app.chat('Hello', short)
      // Retries, because the model process may write there meanwhile.
      await rm(runtimeDir, { recursive: true, maxRetries: 10, retryDelay: 20 })
      const same = await app.chat('Hello', short)
      process.kill(app.loaded()[0]?.processId as number, 'SIGKILL')
      const next = await app.chat('Hello', short).catch(() => app.chat('Hello', short))
      return [first, same, next].map(({ usage }) => usage.outputTokens)
    })

    expect(tokens).toEqual([5, 5, 5])
    expect(await readdir(runtimeDir)).toEqual([])
  })

  test.each([
    ['has a path that is too long for a socket', (path: string) => join(path, 'a'.repeat(80))],
    ['can be entered by other users', (path: string) => path],
    ['cannot be created', (path: string) => join(path, 'file', 'folder')],
  ])('is replaced by a private folder if it %s', async (_why, make) => {
    await chmod(temporary, 0o755)
    await writeFile(join(temporary, 'file'), '')

    const answer = await within(make(temporary), (app) => app.chat('Hello', short))

    expect(answer.usage.outputTokens).toBe(5)
    const [own, ...others] = (await readdir(temporary)).filter((name) => name !== 'file')
    expect(own).toMatch(/^modelmount-/)
    expect(others).toEqual([])
  })

  test('gives an upstream error while no folder can be created, and the next call works once one can', async () => {
    vi.stubEnv('TMPDIR', join(temporary, 'nowhere'))

    await within(join('/dev/null', 'run'), async (app) => {
      await expect(app.chat('Hello', short)).rejects.toMatchObject({
        code: 'upstream',
        message: expect.stringContaining('cannot be started'),
      })
      vi.stubEnv('TMPDIR', temporary)

      expect((await app.chat('Hello', short)).usage.outputTokens).toBe(5)
    })
  })

  // Only root can mount a disk, which is then filled.
  test.runIf(process.platform === 'linux' && process.getuid?.() === 0)(
    'on a full disk gives an upstream error',
    async () => {
      const full = join(temporary, 'full')
      await mkdir(full)
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4k,nr_inodes=2,mode=700', 'none', full])
      try {
        await writeFile(join(full, 'file'), 'x'.repeat(4_096))

        await expect(within(full, (app) => app.chat('Hello', short))).rejects.toMatchObject({
          code: 'upstream',
          message: expect.stringContaining('ENOSPC'),
        })
      } finally {
        execFileSync('umount', [full])
      }
    },
  )
})

test('a missing model process file gives an upstream error that names local.modelProcessPath', async () => {
  const lost = await createLlm({ models: folder, local: { modelProcessPath: join(folder, 'gone.js') } })

  await expect(lost.chat('Hello', short)).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringContaining('local.modelProcessPath'),
  })
})

test('two apps share one model process, and close() of one app does not end an answer of the other', async () => {
  const other = await createLlm({ models: folder })
  try {
    const both = await Promise.all([llm.chat('Hello', short), other.chat('Hello', short)])
    const processIds = [llm, other].map((app) => app.loaded()[0]?.processId)
    const running = llm.chat('Hello', { ...short, maxTokens: 200 })
    await other.close()

    expect(both.map(({ usage }) => usage.outputTokens)).toEqual([5, 5])
    expect(processIds).toEqual([processId(), processId()])
    expect((await running).usage.outputTokens).toBe(200)
  } finally {
    await other.close()
  }
})
