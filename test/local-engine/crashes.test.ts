import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createLlm, type Llm } from '@modelmount/core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { withMetadata } from '../support/broken-model.ts'
import { noiseModel } from '../support/models.ts'
import { isAlive, until } from '../support/processes.ts'

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

const short = { model: 'noise', maxTokens: 5 }
const processId = (): number => llm.loaded()[0]?.processId ?? Number.NaN
const kill = (): boolean => process.kill(processId(), 'SIGKILL')

describe('a model file that crashes the loader', () => {
  const crash = () => llm.chat('Hello', { ...short, model: 'bad' })

  test('is a typed error, and after two crashes is not tried again until it changes', async () => {
    await writeFile(join(folder, 'bad.gguf'), withMetadata('llama.attention.head_count', 0))

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
    }
    const generation = await llm.generate(request, { signal: new AbortController().signal, stream: true })
    try {
      for await (const event of generation) {
        if (event.type === 'end') return event.reason
        onPiece(count++)
      }
      return 'nothing'
    } catch (error) {
      return (error as { code: string }).code
    }
  }

  test('while it reads the prompt ends the call with a typed error', async () => {
    const end = await read(long, 5, (count) => {
      if (count === 0) kill()
    })
    const next = await llm.chat('Hello', short)

    expect(end).toBe('upstream')
    expect(next.usage.outputTokens).toBe(5)
  })

  test('at the last token ends the call whole or with a typed error', async () => {
    const end = await read('Hello', 20, (count) => {
      if (count === 20) kill()
    })
    const next = await llm.chat('Hello', short)

    expect(['length', 'upstream']).toContain(end)
    expect(next.usage.outputTokens).toBe(5)
  })
})

describe('the folder of the socket', () => {
  let temporary: string

  beforeEach(async () => {
    temporary = await mkdtemp(join(tmpdir(), 't-'))
  })

  afterEach(async () => {
    vi.unstubAllEnvs()
    await rm(temporary, { recursive: true, force: true })
  })

  test('may be deleted while the model is loaded, and is gone when it is closed', async () => {
    vi.stubEnv('TMPDIR', temporary)
    await llm.chat('Hello', short)
    const [socketFolder] = await readdir(temporary)
    await rm(join(temporary, socketFolder as string), { recursive: true })

    const same = await llm.chat('Hello', short)
    kill()
    const next = await llm.chat('Hello', short).catch(() => llm.chat('Hello', short))
    await llm.close()

    expect([same.usage.outputTokens, next.usage.outputTokens]).toEqual([5, 5])
    expect(await readdir(temporary)).toEqual([])
  })

  test('is short where the temporary folder is long, which would cut the path of the socket', async () => {
    const deep = join(temporary, 'a'.repeat(60), 'b'.repeat(60))
    await mkdir(deep, { recursive: true })
    vi.stubEnv('TMPDIR', deep)

    const answer = await llm.chat('Hello', short)

    expect(answer.usage.outputTokens).toBe(5)
    expect(await readdir(deep)).toEqual([])
  })

  test('that cannot be made is a typed error, and the next call is served once it can', async () => {
    vi.stubEnv('TMPDIR', join(temporary, 'nowhere'))

    await expect(llm.chat('Hello', short)).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('cannot be started'),
    })
    vi.unstubAllEnvs()

    expect((await llm.chat('Hello', short)).usage.outputTokens).toBe(5)
  })

  // Only root may make a disk that is full.
  test.runIf(process.platform === 'linux' && process.getuid?.() === 0)(
    'on a full disk is a typed error',
    async () => {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4k,nr_inodes=2', 'none', temporary])
      try {
        await writeFile(join(temporary, 'full'), 'x'.repeat(4_096))
        vi.stubEnv('TMPDIR', temporary)

        await expect(llm.chat('Hello', short)).rejects.toMatchObject({
          code: 'upstream',
          message: expect.stringContaining('ENOSPC'),
        })
      } finally {
        execFileSync('umount', [temporary])
      }
    },
  )
})

test('a model process whose file was lost is a typed error that names the option', async () => {
  const lost = await createLlm({ models: folder, local: { modelProcess: join(folder, 'gone.js') } })

  await expect(lost.chat('Hello', short)).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringContaining('local.modelProcess'),
  })
})

test('two apps at once do not know of each other', async () => {
  const other = await createLlm({ models: folder })
  try {
    const answers = await Promise.all([llm.chat('Hello', short), other.chat('Hello', short)])

    expect(answers.map(({ usage }) => usage.outputTokens)).toEqual([5, 5])
    expect(other.loaded()[0]?.processId).not.toBe(processId())
  } finally {
    await other.close()
  }
})

describe('an app that does not tidy up', () => {
  function startApp(mode: 'once' | 'forever') {
    const file = fileURLToPath(new URL('./app.mjs', import.meta.url))
    const child: ChildProcess = spawn(process.execPath, [file, folder, mode], {
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    const firstLine = once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), 'line')
    return {
      modelProcess: firstLine.then(([line]) => JSON.parse(line as string).processId as number),
      exited: once(child, 'exit'),
      /** To the whole group, as a terminal does it. */
      signal: (signal: NodeJS.Signals) => process.kill(-(child.pid as number), signal),
    }
  }

  test('takes its model process along when a script just ends', async () => {
    const app = startApp('once')

    const modelProcess = await app.modelProcess
    const [code] = await app.exited

    expect(code).toBe(0)
    await until(() => !isAlive(modelProcess), 10_000)
  })

  // kill -9; Ctrl-C; a watcher that restarts the app, such as nodemon or tsx; a closed terminal.
  test.each(['SIGKILL', 'SIGINT', 'SIGTERM', 'SIGUSR2', 'SIGHUP'] as const)(
    'takes it along at %s',
    async (signal) => {
      const app = startApp('forever')

      const modelProcess = await app.modelProcess
      app.signal(signal)
      await app.exited

      await until(() => !isAlive(modelProcess), 10_000)
    },
  )
})
