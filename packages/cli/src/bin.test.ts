import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { readEvents } from '@modelmount/core/testing'
import { afterEach, expect, test } from 'vitest'
import { adapterFile } from '../../../test/support/adapter.ts'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { until } from '../../../test/support/processes.ts'

const bin = fileURLToPath(new URL('../bin/modelmount.js', import.meta.url))
const tinyModel = fileURLToPath(new URL('../../tiny-model/tiny-chat.gguf', import.meta.url))
const noiseModel = fileURLToPath(new URL('../../../test/models/tiny-llama-spm.f16.gguf', import.meta.url))

const started: { kill(signal: NodeJS.Signals): boolean }[] = []

afterEach(() => {
  for (const command of started.splice(0)) command.kill('SIGKILL')
})

function run(args: readonly string[], environment: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [bin, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, OLLAMA_HOST: '', OLLAMA_MODELS: '', OLLAMA_CONTEXT_LENGTH: '', ...environment },
  })
  started.push(child)
  const stdoutLines: string[] = []
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => stdoutLines.push(line))
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  return {
    stdoutLines,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    address: once(lines, 'line').then(([line]) => String(line).replace('Listening on ', '')),
    exit: once(child, 'close').then(([code, signal]) => ({ code, signal, stderr })),
  }
}

const ask = (address: string, body: object) =>
  fetch(`${address}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }], ...body }),
  })

test.each([
  ['--version'],
  ['list', '--host', '127.0.0.1:1'],
  ['run', 'tiny', 'Hello', '--host', '127.0.0.1:1'],
])('modelmount %s loads no file of core', async (...args) => {
  const coverage = emptyFolder()

  await run(args, { NODE_V8_COVERAGE: coverage }).exit

  const [report = ''] = await readdir(coverage)
  const { result } = JSON.parse(await readFile(join(coverage, report), 'utf8')) as {
    result: { url: string }[]
  }
  const urls = result.map(({ url }) => url)
  expect(urls.some((url) => url.includes('/cli/dist/commands/list.js'))).toBe(true)
  expect(urls.filter((url) => url.includes('/core/'))).toEqual([])
})

test('serve prints one line with its address and answers with the built-in model', async () => {
  const server = run(['serve', '--port', '0'])
  const address = await server.address

  const ready = await fetch(`${address}/readyz`)
  const response = await ask(address, { model: 'tiny', temperature: 0 })
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }

  expect([ready.status, await ready.text()]).toEqual([200, 'ok'])
  expect(choices[0]?.message.content).toBe('Hello! How can I help you?')
  expect(server.stdoutLines).toEqual([expect.stringMatching(/^Listening on http:\/\/127\.0\.0\.1:\d+$/)])
})

test('--upstream serves the models of another server, with the key in a file', async () => {
  const data = emptyFolder()
  const keyFile = join(data, 'key')
  const create = run(['keys', 'create', 'front', '--data', data])
  await create.exit
  await writeFile(keyFile, /sk-\S+/.exec(create.stdoutLines.join('\n'))?.[0] ?? '')
  const upstream = await run(['serve', '--port', '0', '--auth', 'keys', '--data', data]).address
  const front = (environment: NodeJS.ProcessEnv) =>
    run(['serve', '--port', '0', '--models', emptyFolder(), '--upstream', `gpu=${upstream}`], environment)
      .address
  const [withKey, withoutKey] = await Promise.all([
    front({ MODELMOUNT_UPSTREAM_GPU_KEY_FILE: keyFile }),
    front({}),
  ])

  const answer = await ask(withKey, { model: 'gpu/tiny', temperature: 0 })
  const refused = await ask(withoutKey, { model: 'gpu/tiny' })

  expect(await answer.json()).toMatchObject({
    model: 'gpu/tiny',
    choices: [{ message: { content: 'Hello! How can I help you?' } }],
  })
  expect(refused.status).toBe(500)
})

test('--metrics and --metrics-port serve metrics, which are a 404 without them', async () => {
  const server = run(['serve', '--port', '0', '--metrics', '--metrics-port', '0'])
  const plain = run(['serve', '--port', '0'])
  const address = await server.address
  await (await ask(address, { model: 'tiny', max_tokens: 1 })).text()
  const [, line = ''] = server.stdoutLines
  const local = /^Metrics on (http:\/\/127\.0\.0\.1:\d+\/metrics)$/.exec(line)?.[1] ?? ''

  const counted = 'modelmount_calls_total{route="/v1/chat/completions",kind="generate",model="tiny:latest"'
  expect(await (await fetch(`${address}/metrics`)).text()).toContain(counted)
  expect(await (await fetch(local)).text()).toContain(counted)
  expect((await fetch(local, { headers: { 'x-forwarded-for': '203.0.113.9' } })).status).toBe(403)
  expect((await fetch(`${await plain.address}/metrics`)).status).toBe(404)
  server.kill('SIGTERM')
  expect(await server.exit).toMatchObject({ code: 0 })
})

test('--access-log writes a line for each call and each load', async () => {
  const server = run(['serve', '--port', '0', '--access-log'])
  const address = await server.address

  await (await ask(address, { model: 'tiny', temperature: 0 })).json()
  server.kill('SIGTERM')
  const { stderr } = await server.exit

  expect(stderr).toMatch(/^modelmount: model loaded model=tiny:latest processId=\d+ .*gpuLayers=\d+/m)
  expect(stderr).toMatch(
    /^modelmount: call ended callId=\S+ .*model=tiny:latest .*status=ended .*outputTokens=\d+/m,
  )
})

test('listens at OLLAMA_HOST, which an option overrides', async () => {
  const server = run(['serve', '--port', '0'], { OLLAMA_HOST: 'http://localhost:1' })

  expect(await server.address).toMatch(/^http:\/\/localhost:\d{2,}$/)
})

test.each([
  ['--host', ['--host', '0.0.0.0'], ''],
  ['OLLAMA_HOST', [], '0.0.0.0'],
])('rejects a host beyond loopback, by %s, and names the flags', async (_how, args, OLLAMA_HOST) => {
  const server = run(['serve', '--port', '0', ...args], { OLLAMA_HOST })

  expect(await server.exit).toMatchObject({
    code: 1,
    stderr:
      'Error: Other machines can reach 0.0.0.0. Add --auth keys to require an API key, or --no-auth to serve everyone.\n',
  })
  expect(server.stdoutLines).toEqual([])
})

test('with --no-auth, a host beyond loopback serves everyone, with a warning', async () => {
  const server = run(['serve', '--host', '0.0.0.0', '--port', '0', '--no-auth'])
  const address = await server.address

  const response = await fetch(`${address.replace('0.0.0.0', '127.0.0.1')}/v1/models`, {
    headers: { 'x-forwarded-for': '203.0.113.7' },
  })

  expect(response.status).toBe(200)
  expect(server.stdoutLines).toEqual([
    expect.stringContaining('Listening'),
    expect.stringContaining('Warning'),
  ])
})

test('--no-auth has no effect on loopback', async () => {
  const server = run(['serve', '--port', '0', '--no-auth'])
  const address = await server.address

  const direct = await fetch(`${address}/v1/models`)
  const proxied = await fetch(`${address}/v1/models`, { headers: { 'x-forwarded-for': '203.0.113.7' } })

  expect([direct.status, proxied.status]).toEqual([200, 401])
  expect(server.stdoutLines).toEqual([expect.stringContaining('Listening')])
})

test('--model serves one file', async () => {
  const server = run(['serve', '--port', '0', '--model', noiseModel, '--context', '256', '--threads', '1'])
  const address = await server.address

  const response = await ask(address, { model: 'tiny-llama-spm.f16', max_tokens: 3 })

  expect(await response.json()).toMatchObject({ usage: { completion_tokens: 3 } })
})

test('--adapter changes the model of --model, by its scale', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'adapters-'))
  const [mine, other] = [join(folder, 'mine.gguf'), join(folder, 'other.gguf')]
  await writeFile(mine, adapterFile())
  await writeFile(other, adapterFile({ weight: 0.1 }))
  const answerWith = async (...adapters: readonly string[]): Promise<string | undefined> => {
    const named = adapters.flatMap((adapter) => ['--adapter', adapter])
    const server = run(['serve', '--port', '0', '--model', tinyModel, '--context', '256', ...named])
    const response = await ask(await server.address, { model: 'tiny-chat', temperature: 0, max_tokens: 12 })
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }
    server.kill('SIGTERM')
    return choices[0]?.message.content
  }

  const plain = await answerWith()
  const answers = [
    await answerWith(mine),
    await answerWith(`${mine}=0`),
    await answerWith(`${mine}=0`, `${other}=0`),
  ]

  expect(plain).toBe('Hello! How can I help you?')
  expect(answers[0]).not.toBe(plain)
  expect(answers.slice(1)).toEqual([plain, plain])
  await rm(folder, { recursive: true })
}, 60_000)

test('options set how models are loaded', async () => {
  const server = run(
    [
      ['serve', '--port', '0', '--context', '512', '--max-context', '1024', '--parallel', '1'],
      ['--gpu-layers', 'max', '--kv-type', 'q8_0', '--flash-attention', '--max-loaded', '1'],
      ['--keep-alive', '-1', '--reload-cooldown', '10', '--max-queued', '9', '--queue-timeout', '90'],
    ].flat(),
  )
  const address = await server.address
  const generate = (num_ctx?: number) =>
    fetch(`${address}/api/generate`, {
      method: 'POST',
      body: JSON.stringify({ model: 'tiny', prompt: 'Hello', options: { num_ctx, num_predict: 1 } }),
    })

  const tooLarge = await generate(1_025)
  const answered = await generate()
  await answered.text()
  const { models } = (await (await fetch(`${address}/api/ps`)).json()) as { models: object[] }

  expect([tooLarge.status, answered.status]).toEqual([400, 200])
  expect(await tooLarge.json()).toEqual({
    error: 'A context of 1025 tokens exceeds the limit of 1024 tokens.',
  })
  expect(models).toMatchObject([{ name: 'tiny:latest', context_length: 512, size_vram: 0 }])
})

test('unknown paths are answered with an error of the dialect', async () => {
  const server = run(['serve', '--port', '0'])
  const address = await server.address

  const response = await fetch(`${address}/v1/nope`)
  const other = await fetch(`${address}/nope`)

  expect(response.status).toBe(404)
  expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error' } })
  expect([other.status, await other.text()]).toEqual([404, '404 page not found'])
})

test.each(['SIGTERM', 'SIGINT'] as const)('%s lets running answers end, then exits', async (signal) => {
  const server = run(['serve', '--port', '0', '--model', noiseModel])
  const address = await server.address
  const { body } = await ask(address, { model: 'tiny-llama-spm.f16', stream: true, max_tokens: 800 })

  const frames: string[] = []
  for await (const { data } of readEvents(body as ReadableStream<Uint8Array>)) {
    frames.push(data)
    if (frames.length === 5) server.kill(signal)
  }

  expect(frames.at(-1)).toBe('[DONE]')
  expect(await server.exit).toMatchObject({ code: 0 })
})

test('--drain ends a stream with an error at the deadline', async () => {
  const server = run(['serve', '--port', '0', '--model', noiseModel, '--drain', '1'])
  const address = await server.address
  const { body } = await ask(address, { model: 'tiny-llama-spm.f16', stream: true, max_tokens: 100_000 })

  const frames: string[] = []
  for await (const { data } of readEvents(body as ReadableStream<Uint8Array>)) {
    frames.push(data)
    if (frames.length === 5) server.kill('SIGTERM')
  }

  expect(frames.at(-1)).toContain('The server closed before the answer was complete.')
  expect(await server.exit).toMatchObject({ code: 0 })
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('a second %s exits at once', async (signal, code) => {
  const server = run(['serve', '--port', '0', '--model', noiseModel])
  const address = await server.address
  const { body } = await ask(address, { model: 'tiny-llama-spm.f16', stream: true })
  const events = readEvents(body as ReadableStream<Uint8Array>)
  await events.next()

  server.kill(signal)
  const again = setInterval(() => server.kill(signal), 20)
  const exit = await server.exit
  clearInterval(again)

  expect(exit).toMatchObject({ code })
})

test.each([
  [['serve', '--port', 'x'], 'whole number from 0 to 65535'],
  [['serve', '--context', '1'], 'whole number from 16'],
  [['serve', '--gpu-layers', 'all'], 'whole number, max or auto'],
  [['serve', '--kv-type', 'Q8_0'], 'Allowed choices are f16, q8_0, q4_0'],
  [['serve', '--max-loaded', '0'], 'whole number from 1'],
  [['serve', '--keep-alive', 'long'], "`local.keepAlive` (--keep-alive): Expected a duration such as '5m'"],
  [['serve', '--reload-cooldown', '2h'], "`local.reloadCooldown` (--reload-cooldown): Expected at most '1h'"],
  [['serve', '--max-queued', '-1'], 'whole number from 0'],
  [['serve', '--drain', '10s'], 'whole number from 0 to 3600'],
  [
    ['serve', '--queue-timeout', 'long'],
    "`queueTimeout` (--queue-timeout): Expected a duration such as '5m'",
  ],
  [['serve', '--store-max', 'much'], "`store.maxBytes` (--store-max): Expected a byte size such as '32mb'"],
  [['serve', '--no-flash-attention', '--kv-type', 'q8_0'], '`local.flashAttention` (--flash-attention)'],
  [['batch', 'list', '--limit', '0'], 'Expected a whole number from 1 to 1000'],
  [['batch', 'submit'], "missing required argument 'file'"],
  [['serve', '--prot', '1'], 'Did you mean --port'],
  [['run', 'tiny', '--format', 'xml', 'Hello'], 'Expected json, or a JSON Schema as a JSON object.'],
  [['run', 'tiny', '--format', '{"type":', 'Hello'], 'Expected json, or a JSON Schema as a JSON object.'],
  [['run', 'tiny', '--format', '[]', 'Hello'], 'Expected json, or a JSON Schema as a JSON object.'],
  [['serve', '--adapter', 'a.gguf=much'], 'file.gguf=0.5'],
  [['serve', '--adapter', 'a.gguf='], 'file.gguf=0.5'],
])('%j names the expected value', async (args, expected) => {
  const { code, stderr } = await run(args).exit

  expect(code).toBe(1)
  expect(stderr).toContain(expected)
})

test('a server whose port for metrics is in use does not start, and the error names the flag', async () => {
  const other = run(['serve', '--port', '0'])
  const { port } = new URL(await other.address)

  const { code, stderr } = await run(['serve', '--port', '0', '--metrics-port', port]).exit

  expect(code).toBe(1)
  expect(stderr).toContain(`choose another port: --metrics-port ${Number(port) + 1}`)
})

test('the error for a port in use is one line that names its program and another port', async () => {
  const first = run(['serve', '--port', '0'])
  const port = Number(new URL(await first.address).port)

  const { code, stderr } = await run(['serve', '--port', String(port)]).exit

  expect(code).toBe(1)
  expect(stderr).toBe(
    `Error: Port ${port} on 127.0.0.1 is in use by another Modelmount. Stop it, or choose another port: --port ${port + 1}\n`,
  )
})

test.each([
  [['serve', '--port', '0', '--models', 'no-such-folder'], {}, 'no-such-folder does not exist'],
  [['serve', '--port', '0', '--model', 'no-such.gguf'], {}, 'no-such.gguf does not exist'],
  [['serve', '--adapter', 'a.gguf'], {}, '--adapter requires --model FILE'],
  [
    ['serve', '--port', '0', '--auth', 'keys', '--no-auth'],
    {},
    '--auth keys and --no-auth exclude each other',
  ],
  [
    ['serve', '--port', '0', '--no-auth', '--auth', 'keys'],
    {},
    '--auth keys and --no-auth exclude each other',
  ],
  [['serve', '--port', '0', '--model', noiseModel, '--auth', 'keys'], {}, 'Add --data FOLDER.'],
  [['serve', '--model', noiseModel, '--adapter', 'a.gguf'], {}, 'a.gguf does not exist'],
  [
    ['serve', '--model', noiseModel, '--adapter', './a.gguf', '--adapter', 'a.gguf=0.5'],
    {},
    'a.gguf is named twice',
  ],
  [['serve', '--port', '0'], { OLLAMA_HOST: 'a:b:c' }, 'OLLAMA_HOST'],
  [['serve', '--port', '0'], { OLLAMA_CONTEXT_LENGTH: 'abc' }, 'OLLAMA_CONTEXT_LENGTH'],
  [['serve', '--port', '0'], { OLLAMA_KV_CACHE_TYPE: 'q9' }, 'OLLAMA_KV_CACHE_TYPE'],
])('%j with %j prints one line', async (args, environment, expected) => {
  const { code, stderr } = await run(args, environment).exit

  expect(code).toBe(1)
  expect(stderr).toMatch(/^Error: .*\n$/)
  expect(stderr).toContain(expected)
})

test('a folder without a GGUF file is served, with a warning', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'empty-'))
  const server = run(['serve', '--port', '0', '--models', folder])
  const address = await server.address

  await fetch(`${address}/v1/models`)
  await until(() => server.stdoutLines.length === 2, 5_000)

  expect(server.stdoutLines[1]).toBe(`Warning: no GGUF file found in ${folder}.`)
  await rm(folder, { recursive: true })
})

test('logs a model that cannot be loaded on stderr', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'broken-'))
  await writeFile(join(folder, 'broken.gguf'), 'not a model')
  const server = run(['serve', '--port', '0', '--models', folder])
  const address = await server.address

  const response = await ask(address, { model: 'broken' })
  server.kill('SIGTERM')
  const { stderr } = await server.exit

  expect(response.status).toBe(500)
  expect(stderr).toMatch(/^modelmount: The file of the model "broken:latest" cannot be used: .*\n$/)
  await rm(folder, { recursive: true })
})
