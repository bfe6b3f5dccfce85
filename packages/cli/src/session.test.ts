/** The commands as a user types them, in order, with and without a server. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { modelPath } from '@modelmount/tiny-model'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { hasDockerRegistry, startDockerRegistry } from '../../../test/support/docker-registry.mjs'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { listen } from '../../../test/support/listen.ts'
import { encoderModel, noiseModel } from '../../../test/support/models.ts'
import { SmallRegistry } from '../../../test/support/registry.ts'
import { hasTerminal, inTerminal, type Terminal } from '../../../test/support/terminal.ts'

/** Whether no server listens at the default address. */
const isAlone = await fetch('http://127.0.0.1:11434').then(
  () => false,
  () => true,
)
const bin = fileURLToPath(new URL('../bin/modelmount.js', import.meta.url))
const greeting = 'Hello! How can I help you?'

interface Finished {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

interface ProgressLine {
  readonly status: string
  readonly digest?: string
  readonly total?: number
  readonly completed?: number
}

const linesOf = ({ stdout }: Finished): readonly ProgressLine[] =>
  stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as ProgressLine)

const statusesOf = (finished: Finished): readonly string[] => linesOf(finished).map(({ status }) => status)

interface RunOptions {
  readonly environment: NodeJS.ProcessEnv
  readonly folder?: string
  readonly input?: string
}

async function runIn(
  args: readonly string[],
  { environment, folder, input = '' }: RunOptions,
): Promise<Finished> {
  const child = spawn(process.execPath, [bin, ...args], {
    env: { ...process.env, OLLAMA_HOST: '', ...environment },
    cwd: folder,
  })
  child.stdin.end(input)
  const closed = once(child, 'close')
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = (await closed) as [number]
  return { code, stdout, stderr }
}

describe.each(['with a server', 'without a server'])('%s', (how) => {
  const hasServer = how === 'with a server'
  const models = emptyFolder()
  const work = emptyFolder()
  const home = emptyFolder()
  symlinkSync(encoderModel, join(models, 'bert.gguf'))
  let registry: { readonly host: string; close(): Promise<void> }
  let server: ReturnType<typeof spawn> | undefined
  let environment: NodeJS.ProcessEnv

  // Without `--no-server`, commands would use a server that happens to run on this machine.
  const commandOf = (args: readonly string[]): readonly string[] =>
    hasServer ? args : [...args, '--no-server']

  const run = (args: readonly string[], input = ''): Promise<Finished> =>
    runIn(commandOf(args), { environment, folder: work, input })

  beforeAll(async () => {
    registry = await (hasDockerRegistry ? startDockerRegistry() : SmallRegistry.start())
    environment = {
      ...process.env,
      HOME: home,
      OLLAMA_HOST: '',
      OLLAMA_MODELS: models,
      OLLAMA_CONTEXT_LENGTH: '2048',
      OLLAMA_NOHISTORY: '',
    }
    if (!hasServer) return
    const options = ['serve', '--port', '0', '--registry', registry.host, '--private-registry', registry.host]
    server = spawn(process.execPath, [bin, ...options], { env: environment })
    const [line] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
    environment.OLLAMA_HOST = String(line).trim().replace('Listening on ', '')
  }, 30_000)

  afterAll(async () => {
    if (server?.kill('SIGTERM')) await once(server, 'close')
    await registry?.close()
  })

  const modelfile = (text: string, name = 'Modelfile'): void => writeFileSync(join(work, name), text)

  test('creates a model from a Modelfile and a file in the same folder, and uploads the file once', async () => {
    copyFileSync(modelPath, join(work, 'tiny-chat.gguf'))
    modelfile(
      'FROM ./tiny-chat.gguf\nSYSTEM You are Bob.\nPARAMETER temperature 0\nPARAMETER stop "<|a b|>"\n',
    )

    const first = await run(['create', 'bob'])
    const second = await run(['create', 'robert', '-f', join(work, 'Modelfile')])

    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(statusesOf(first)[0]).toBe('gathering model components')
    expect(linesOf(first)).toContainEqual({
      status: expect.stringMatching(/^copying file sha256:[0-9a-f]{64}$/),
      digest: expect.stringMatching(/^sha256:/),
      total: statSync(modelPath).size,
      completed: statSync(modelPath).size,
    })
    expect(statusesOf(first).slice(-2)).toEqual(['writing manifest', 'success'])
    expect(statusesOf(second).filter((status) => status.startsWith('creating new layer'))).toEqual([])
  })

  test('shows a model, and each part of it', async () => {
    modelfile('FROM tiny\nSYSTEM You are Bob.\nPARAMETER temperature 0\nLICENSE MIT\n')
    await run(['create', 'shown'])

    const whole = await run(['show', 'shown'])
    const system = await run(['show', 'shown', '--system'])
    const license = await run(['show', 'shown', '--license'])
    const parameters = await run(['show', 'shown', '--parameters'])
    const { stdout } = await run(['show', 'shown', '--modelfile'])
    const verbose = await run(['show', '-v', 'shown'])

    expect(whole.stdout).toMatch(/^ {2}Model\n {4}architecture {8}llama\n/)
    expect(whole.stdout).toContain('  Parameters\n    temperature    0\n\n  System\n    You are Bob.\n\n')
    expect([system.stdout, license.stdout]).toEqual(['You are Bob.\n', 'MIT\n'])
    expect(parameters.stdout).toMatch(/^temperature +0\n$/)
    expect(stdout).toMatch(/^# Modelfile generated by "ollama show"\n[\s\S]*\nSYSTEM You are Bob.\n/)
    expect(verbose.stdout).toContain('tokenizer.ggml.tokens')
  })

  test('reads a Modelfile from stdin, with paths relative to the working folder', async () => {
    copyFileSync(modelPath, join(work, 'piped-in.gguf'))

    const made = await run(['create', 'from-pipe', '-f', '-'], 'FROM ./piped-in.gguf\nSYSTEM You are Pia.\n')
    const { stdout } = await run(['show', 'from-pipe', '--system'])

    expect(made).toMatchObject({ code: 0, stderr: '' })
    expect(stdout).toBe('You are Pia.\n')
  })

  test('prints an unreachable registry once', async () => {
    const pulled = await run(['pull', '127.0.0.1:9/library/nope', '--insecure'])

    expect(pulled.code).toBe(1)
    expect(pulled.stderr).toMatch(/^Error: [^\n]+\n$/)
  })

  test('the shown Modelfile creates the same model', async () => {
    modelfile(
      'FROM tiny\nSYSTEM """You are "Bob".\nA man."""\nPARAMETER stop " x"\nMESSAGE user Hi\nLICENSE MIT\n',
    )
    await run(['create', 'once'])
    const once = await run(['show', 'once', '--modelfile'])
    modelfile(once.stdout, 'Shown')

    await run(['create', 'twice', '-f', 'Shown'])
    const twice = await run(['show', 'twice', '--modelfile'])

    expect(once.stdout).toContain('SYSTEM """You are "Bob".\nA man."""\nPARAMETER stop " x"\n')
    expect(twice.stdout).toBe(once.stdout.replaceAll('once:latest', 'twice:latest'))
    expect(once.stdout).toMatch(/^FROM sha256-[0-9a-f]{64}$/m)
  })

  test('a line removed from the shown Modelfile stays removed', async () => {
    modelfile('FROM tiny\nSYSTEM You are Bob.\nPARAMETER temperature 0\nLICENSE MIT\n')
    await run(['create', 'whole'])
    const whole = await run(['show', 'whole', '--modelfile'])
    modelfile(whole.stdout.replace(/^(LICENSE|PARAMETER).*\n/gm, ''), 'Shorter')

    await run(['create', 'shorter', '-f', join(work, 'Shorter')])
    const { stdout } = await run(['show', 'shorter', '--modelfile'])

    expect(whole.stdout).toMatch(/PARAMETER temperature 0\nLICENSE MIT\n/)
    expect(stdout).toMatch(/\nSYSTEM You are Bob\.\n+$/)
  })

  test('lists, copies and removes models', async () => {
    const copied = await run(['cp', 'tiny', 'second'])
    await run(['cp', 'tiny', 'third'])
    const { stdout } = await run(['list', 'SEC'])
    const all = await run(['ls'])
    const removed = await run(['rm', 'second', 'third'])

    expect(copied.stdout).toBe("copied 'tiny' to 'second'\n")
    expect(stdout).toMatch(
      /^NAME {13}ID {14}SIZE {6}MODIFIED\nsecond:latest {4}[0-9a-f]{12} {4}5\.2 MB {4}[^\n]+ ago\n$/,
    )
    expect(all.stdout).toMatch(/^third:latest /m)
    expect(removed.stdout).toBe("deleted 'second'\ndeleted 'third'\n")
    expect((await run(['list'])).stdout).not.toMatch(/^(second|third):/m)
  })

  test('pushes a model to a registry and pulls it', async () => {
    const name = `${registry.host}/library/travelled-${hasServer}`
    modelfile('FROM tiny\nSYSTEM You have travelled.\n')
    await run(['create', name])

    const pushed = await run(['push', name, '--insecure'])
    await run(['rm', name])
    const pulled = await run(['pull', name, '--insecure'])
    const again = await run(['pull', name, '--insecure'])
    const { stdout } = await run(['show', name, '--system'])

    expect(pushed).toMatchObject({ code: 0, stderr: '' })
    expect([statusesOf(pushed)[0], statusesOf(pushed).at(-1)]).toEqual(['retrieving manifest', 'success'])
    expect([statusesOf(pulled)[0], statusesOf(pulled).at(-1)]).toEqual(['pulling manifest', 'success'])
    expect(
      linesOf(again).filter(({ total, completed }) => total && completed === total).length,
    ).toBeGreaterThan(2)
    expect(stdout).toBe('You have travelled.\n')
  })

  test('pulls a missing model before it answers, and prints only the answer on stdout', async () => {
    const name = `${registry.host}/library/answering-${hasServer}`
    await run(['cp', 'tiny', name])
    await run(['push', name, '--insecure'])
    await run(['rm', name])

    const answered = await run(['run', name, '--insecure', '--hidethinking', 'Hello'])

    expect(answered).toMatchObject({ code: 0, stdout: `${greeting}\n\n` })
    expect(answered.stderr).toContain('{"status":"pulling manifest"}')
  })

  test('prints thinking separately, or hides it', async () => {
    const thinking = await run(['run', 'tiny', 'Hello', '--think'])
    const silent = await run(['run', 'tiny', '--think=false', 'Hello'])

    expect(thinking.stdout).toMatch(/^Thinking\.\.\.\n[\s\S]+\n\.\.\.done thinking\.\n\nHello![\s\S]+\n\n$/)
    expect(silent.stdout).toBe(`${greeting}\n\n`)
  })

  test('takes the prompt from stdin, and appends the arguments', async () => {
    modelfile('FROM tiny\nPARAMETER temperature 0\n')
    await run(['create', 'piped'])
    const args = ['run', 'piped', '--think=false', '--verbose']

    const piped = await run(args, 'Hello')
    const both = await run(['run', 'piped', '--format', 'json', '--hidethinking', 'Answer'], 'Who are you?')

    expect(piped.stdout).toBe(`${greeting}\n\n`)
    expect(piped.stderr).toMatch(
      /^total duration: +\d[\s\S]*\neval count: +\d+ token\(s\)\n[\s\S]*tokens\/s\n$/,
    )
    expect(JSON.parse(both.stdout)).toBeTypeOf('object')
  })

  test('an embedding model prints a vector', async () => {
    const { stdout } = await run(['run', 'bert', 'hello world'])

    expect(JSON.parse(stdout)).toHaveLength(64)
  })

  test('lists models as JSON, with the fields of the API', async () => {
    const listed = await run(['ls', 'TIN', '--json'])

    expect(JSON.parse(listed.stdout)).toMatchObject([
      { name: 'tiny:latest', digest: expect.stringMatching(/^[0-9a-f]{64}$/), details: { format: 'gguf' } },
    ])
  })

  test('refuses to quantize before it uploads anything', async () => {
    modelfile('FROM ./tiny-chat.gguf\n')
    copyFileSync(modelPath, join(work, 'tiny-chat.gguf'))

    const { code, stdout, stderr } = await run(['create', 'small', '-q', 'q4_K_M'])

    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toBe(
      'Error: --quantize: Modelmount cannot quantize, because node-llama-cpp has no quantizer. ' +
        'Quantize the file with llama-quantize of llama.cpp, and create the model from the result.\n',
    )
  })

  test('lists loaded models with their expiry, and stops them', async () => {
    await run(['run', 'tiny', '--keepalive', '10m', 'Hello'])
    const loaded = await run(['ps'])
    const asJson = await run(['ps', '--json'])
    const stopped = await run(['stop', 'tiny'])
    const after = await run(['ps'])

    const header = /^NAME +ID +SIZE +PROCESSOR +CONTEXT +UNTIL\n/
    expect([loaded.stdout, after.stdout]).toEqual([
      expect.stringMatching(header),
      expect.stringMatching(header),
    ])
    expect(stopped).toMatchObject({ code: 0, stdout: '' })
    expect(after.stdout).not.toContain('tiny:latest')
    const models = JSON.parse(asJson.stdout) as readonly { readonly name: string }[]
    expect(models.filter(({ name }) => name === 'tiny:latest')).toMatchObject(
      hasServer ? [{ context_length: 2_048, expires_at: expect.any(String) }] : [],
    )
    if (hasServer) expect(loaded.stdout).toMatch(/^tiny:latest .* 2048 +\d+ minutes from now$/m)
    else expect(loaded.stderr).toMatch(/^No server was asked/)
  })

  test.each([
    [['show', 'nope'], "model 'nope:latest' not found"],
    [['rm', 'nope'], "model 'nope' not found"],
    [['cp', 'nope', 'other'], 'model "nope" not found'],
    [['stop', 'nope'], 'couldn\'t find model "nope" to stop'],
    [['create', 'bob', '-f', 'NoSuchFile'], 'the Modelfile NoSuchFile does not exist'],
    [['run', '127.0.0.1:9/library/nope', '--insecure', 'Hello'], ''],
  ])('the error of %j is one plain line', async (args, expected) => {
    const { code, stderr, stdout } = await run(args)

    expect([code, stdout]).toEqual([1, ''])
    expect(stderr.split('\n').at(-2)).toMatch(/^Error: ./)
    expect(stderr).toContain(expected)
  })

  describe.skipIf(!hasTerminal)('in a terminal', () => {
    let terminal: Terminal | undefined

    const open = (...args: readonly string[]): Terminal => {
      terminal = inTerminal([process.execPath, bin, ...commandOf(args)], environment)
      return terminal
    }

    afterEach(async () => {
      terminal?.kill('SIGKILL')
      await terminal?.exit
    })

    test('a conversation continues until the user exits', async () => {
      const { type, shows, exit } = open('run', 'tiny', '--think=false')

      await shows('>>> Send a message (/? for help)')
      type('/set parameter temperature 0\r')
      await shows("Set parameter 'temperature' to '0'")
      await shows('>>> ')
      type('Hello\r')
      await shows(greeting)
      await shows('>>> ')
      type('/set system """You are\rBob."""\r')
      await shows('Set system message.')
      type('/show system\r')
      await shows('You are\r\nBob.')
      type('/nonsense\r')
      await shows("Unknown command '/nonsense'. Type /? for help")
      type('/set parameter num_ctx many\r')
      await shows('Error: invalid int value [many]')
      type('/clear\r')
      await shows('Cleared session context')
      type('/?\r')
      await shows('/bye')
      type('/bye\r')

      expect(await exit).toBe(0)
    })

    test('shows how far the load of a model is, until the answer or the prompt begins', async () => {
      /** A command without a server loads the model again for another context. */
      const openUnloaded = async (contextSize: string, ...args: readonly string[]): Promise<Terminal> => {
        await run(['stop', 'tiny'])
        terminal = inTerminal([process.execPath, bin, ...commandOf(['run', 'tiny', ...args])], {
          ...environment,
          OLLAMA_CONTEXT_LENGTH: contextSize,
        })
        return terminal
      }

      const answer = await openUnloaded('1024', 'Hello', '--think=false')
      await answer.shows('loading model: ')
      await answer.shows('% ▕')
      await answer.shows(greeting)
      expect(await answer.exit).toBe(0)
      const chat = await openUnloaded('512')
      await chat.shows('loading model: ')
      await chat.shows('>>> ')

      expect(answer.raw()).toContain(`\r\x1b[K${greeting}`)
      expect(chat.raw()).toMatch(/▕[^▕]*\r.\[K[^▕]*>>> [^▕]*$/)
    })

    test('saves a conversation as a model, which another conversation starts from', async () => {
      const name = `kept-${hasServer}`
      const first = open('run', 'tiny', '--think=false')
      await first.shows('>>> ')
      first.type('Hello\r')
      await first.shows('help you?')
      await first.shows('>>> ')
      first.type(`/save ${name}\r`)
      await first.shows(`Created new model '${name}'`)
      first.type('\x04')
      expect(await first.exit).toBe(0)

      const second = open('run', name)

      await second.shows('>>> Hello')
      await second.shows('help you?')
      await second.shows('>>> ')
    })

    test('the arrow keys show the lines of earlier conversations, unless their history is off', async () => {
      const file = join(home, '.ollama', 'history')
      const first = open('run', 'tiny')
      await first.shows('>>> ')
      first.type('Hello there\r')
      await first.shows('done thinking.')
      await first.shows('>>> ')
      first.type('/set nohistory\r')
      await first.shows('>>> ')
      first.type('A secret\r')
      await first.shows('done thinking.')
      await first.shows('>>> ')
      first.type('\x04')
      await first.exit

      const second = open('run', 'tiny', '--nohistory')
      await second.shows('>>> ')
      second.type('Another secret\r')
      await second.shows('done thinking.')
      await second.shows('>>> ')
      second.type('\x04')
      await second.exit
      const third = open('run', 'tiny')
      await third.shows('>>> ')
      third.type('\x1b[A\x1b[A')
      await third.shows('Hello there')
      third.type('\r')
      await third.shows('done thinking.')

      expect(readFileSync(file, 'utf8')).toMatch(/Hello there\n\/set nohistory\nHello there\n$/)
      expect(readFileSync(file, 'utf8')).not.toContain('secret')
      expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
    })

    test('Ctrl-C stops an answer, not the conversation; at the prompt it shows how to exit', async () => {
      copyFileSync(noiseModel, join(models, 'noise.gguf'))
      const { type, shows, exit } = open('run', 'noise')

      await shows('>>> ')
      type('Sing\r')
      await shows('Sing')
      type('\x03')
      await shows('>>> ')
      type('\x03')
      await shows('Use Ctrl + d or /bye to exit.')
      type('\x04')

      expect(await exit).toBe(0)
    })

    test.each(['', '1'])('with NO_COLOR=%j, the hint is grey or not', async (NO_COLOR) => {
      terminal = inTerminal([process.execPath, bin, ...commandOf(['run', 'tiny'])], {
        ...environment,
        NO_COLOR,
      })

      await terminal.shows('>>> Send a message')

      expect(terminal.raw().includes('\x1b[90m')).toBe(NO_COLOR === '')
    })

    test('shows progress bars of a transfer', async () => {
      const name = `${registry.host}/library/barred-${hasServer}`
      await run(['cp', 'tiny', name])
      // A second push always shows a full bar, because the registry has the blobs. A first push may be too
      // fast to show one.
      await run(['push', name, '--insecure'])

      const { shows, exit } = open('push', name, '--insecure')

      await shows('retrieving manifest')
      await shows('100% ▕█')
      await shows('success')
      expect(await exit).toBe(0)
    })
  })
})

describe('without a running server', () => {
  const environment = { OLLAMA_MODELS: emptyFolder() }

  test.skipIf(!isAlone)('a command runs in its own process', async () => {
    const { stdout, code } = await runIn(['list'], { environment })

    expect(stdout).toMatch(/^NAME .*\ntiny:latest .*\n$/)
    expect(code).toBe(0)
  })

  test('a named server is the only one that is tried', async () => {
    const unreachable = await listen(() => {})
    await unreachable.close()

    const byOption = await runIn(['list', '--host', unreachable.url], { environment })
    const { hostname, port } = new URL(unreachable.url)
    const byPort = await runIn(['run', 'tiny', '--host', hostname, '--port', port, 'Hello'], { environment })
    const byVariable = await runIn(['list'], {
      environment: { ...environment, OLLAMA_HOST: unreachable.url },
    })

    const stderr = `Error: no server answers at ${unreachable.url} (ECONNREFUSED). Start one: modelmount serve\n`
    expect([byOption, byPort, byVariable]).toEqual(Array(3).fill({ code: 1, stdout: '', stderr }))
  })

  test('checks the Modelfile before any server is called', async () => {
    const folder = environment.OLLAMA_MODELS
    writeFileSync(join(folder, 'Wrong'), 'FROM tiny\nNONSENSE 1\n')
    writeFileSync(join(folder, 'Old'), 'FROM ./missing.gguf\nPARAMETER mirostat 1\n')
    const create = (file: string): Promise<Finished> =>
      runIn(['create', 'wrong', '-f', file, '--host', '127.0.0.1:2'], { environment, folder })

    expect((await create('Wrong')).stderr).toMatch(/^Error: \(line 2\): command must be one of [^\n]*\n$/)
    expect((await create('Old')).stderr).toBe(
      'Warning: the parameter mirostat no longer has an effect\nError: FROM ./missing.gguf does not exist\n',
    )
  })
})
