import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Llm, LlmOptions } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { listen } from '../../../../test/support/listen.ts'
import { serve as serveRoutes } from '../../../../test/support/served.ts'
import { hasTerminal, inTerminal } from '../../../../test/support/terminal.ts'
import { Server, ServerError } from '../server.ts'
import { anthropicApi } from './anthropic.ts'
import { listAll } from './list.ts'
import { openaiApi } from './openai.ts'
import { openRequests } from './request-lines.ts'
import { waitForEnd } from './watch.ts'

const bin = fileURLToPath(new URL('../../bin/modelmount.js', import.meta.url))
let folder: string

beforeEach(() => {
  folder = emptyFolder()
})

const serve = (options: LlmOptions = {}) =>
  serveRoutes({
    engine: scriptedEngine('one two'),
    models: [],
    database: join(folder, 'modelmount.db'),
    ...options,
  })

async function batch(url: string, args: readonly string[], input = '') {
  const child = spawn(process.execPath, [bin, 'batch', ...args], {
    env: { ...process.env, OLLAMA_HOST: url },
    cwd: folder,
  })
  child.stdin.end(input)
  const closed = once(child, 'close')
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  return { code: ((await closed) as [number])[0], stdout, stderr }
}

const messages = [{ role: 'user', content: 'Hello' }]

const anthropic = (id: string, more: object = {}) =>
  `${JSON.stringify({ custom_id: id, params: { model: 'tiny', max_tokens: 10, messages, ...more } })}\n`

const openai = (id: string, more: object = {}) =>
  `${JSON.stringify({ custom_id: id, method: 'POST', url: '/v1/chat/completions', body: { model: 'tiny', messages, ...more } })}\n`

const idsOf = (results: string): readonly string[] =>
  results
    .split('\n')
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as { custom_id: string }).custom_id)

describe.each([
  {
    api: 'Anthropic',
    line: anthropic,
    id: /^msgbatch_\S+\n$/,
    ended: 'ended',
    outcomes: '2 succeeded, 1 errored',
    order: ['a', 'b', 'c'],
  },
  {
    api: 'OpenAI',
    line: openai,
    id: /^batch_\S+\n$/,
    ended: 'completed',
    outcomes: '2 completed, 1 failed',
    order: ['a', 'c', 'b'],
  },
])('with requests of $api', ({ api, line, id, ended, outcomes, order }) => {
  const requests = line('a') + line('b', { temperature: 'hot' }) + line('c')

  test('submits a file, waits, shows the batch, prints the results, and deletes them', async () => {
    writeFileSync(join(folder, 'requests.jsonl'), requests)
    const { url } = await serve()

    const submitted = await batch(url, ['submit', 'requests.jsonl'])
    expect(submitted).toEqual({ code: 0, stdout: expect.stringMatching(id), stderr: '' })
    const batchId = submitted.stdout.trim()
    const waited = await batch(url, ['status', batchId, '--wait'])

    expect(waited.stdout).toMatch(new RegExp(`^Batch +${batchId}\nStatus +${ended}\nRequests +3 `))
    expect(waited.stdout).toContain(`(${outcomes})`)
    const progress = waited.stderr
      .trimEnd()
      .split('\n')
      .map((one) => JSON.parse(one) as object)
    expect(progress.slice(-2)).toEqual([
      { status: 'in_progress', total: 3, completed: 3, unit: 'requests' },
      { status: `ended: ${outcomes}` },
    ])
    const { stdout: results } = await batch(url, ['results', batchId])
    expect(idsOf(results)).toEqual(order)
    expect((await batch(url, ['list'])).stdout).toMatch(
      new RegExp(`^${batchId} +${ended} +3 +${outcomes} +`, 'm'),
    )
    expect((await batch(url, ['cancel', batchId])).stdout).toBe(`${batchId} has already ended.\n`)
    expect((await batch(url, ['delete', batchId])).stdout).toContain(batchId)
    expect(await batch(url, ['results', batchId])).toMatchObject({ code: 1, stdout: '' })
  })

  test('submits stdin, and prints only the id on stdout', async () => {
    const { url } = await serve()

    const { code, stdout, stderr } = await batch(url, ['submit', '-', '--wait'], requests)

    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(id) })
    expect(stderr).toContain(`ended: ${outcomes}`)
  })

  test('an invalid line ends the upload with its number, and leaves no batch', async () => {
    const { url, llm } = await serve()
    writeFileSync(join(folder, 'broken.jsonl'), `${line('a')}${line('b')}{"custom_id":\n`)

    expect(await batch(url, ['submit', 'broken.jsonl'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'Error: broken.jsonl:3: the line is not valid JSON.\n',
    })
    expect((await llm.batches.list()).batches).toEqual([])
    expect((await llm.batches.files.list({ limit: 10 })).files).toEqual([])
  })

  test('shows progress while requests run, and cancels the rest', async () => {
    const gate = openGate()
    const { url, llm } = await serve({
      engine: scriptedEngine(async ({ sampling }) => {
        if (sampling?.temperature === 0.5) await gate.passed
        return 'one two'
      }),
      batches: { concurrency: 1 },
    })
    onTestFinished(gate.open)
    const { stdout } = await batch(
      url,
      ['submit', '-'],
      line('a') + line('b', { temperature: 0.5 }) + line('c') + line('d'),
    )
    const batchId = stdout.trim()
    await untilCompleted(llm, batchId, 1)

    const { stdout: shown } = await batch(url, ['status', batchId, '--json'])
    const early = await batch(url, ['results', batchId])
    const canceled = await batch(url, ['cancel', batchId])
    gate.open()
    const { stdout: end } = await batch(url, ['status', batchId, '--wait', '--json'])

    expect(JSON.parse(shown)).toMatchObject({ isEnded: false, total: 4 })
    expect(Object.values((JSON.parse(shown) as { outcomes: object }).outcomes)[0]).toBe(1)
    expect(early).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('has not ended') })
    expect(canceled.stdout).toBe(`Canceling ${batchId}. Requests that run already end.\n`)
    const { outcomes, isEnded } = JSON.parse(end) as { outcomes: Record<string, number>; isEnded: boolean }
    expect(isEnded).toBe(true)
    expect(outcomes.canceled ?? outcomes.cancelled).toBeGreaterThan(0)
    expect(Object.values(outcomes).reduce((sum, count) => sum + count)).toBe(4)
  })

  test.skipIf(!hasTerminal)('a terminal shows a bar', async () => {
    const { url } = await serve()
    writeFileSync(join(folder, 'requests.jsonl'), requests)

    const { shows, exit } = inTerminal(
      [process.execPath, bin, 'batch', 'submit', join(folder, 'requests.jsonl'), '--wait'],
      { OLLAMA_HOST: url },
    )

    await shows('uploading requests.jsonl: 100% ▕█')
    await shows(api === 'OpenAI' ? 'batch_' : 'msgbatch_')
    await shows('in_progress: 100% ▕█')
    await shows('3 requests')
    await shows(`ended: ${outcomes}`)
    expect(await exit).toBe(0)
  })
})

test('writes results to a file, and replaces an existing one only with --force', async () => {
  const { url } = await serve()
  const id = (await batch(url, ['submit', '-', '--wait'], anthropic('a'))).stdout.trim()

  const written = await batch(url, ['results', id, '--output', 'results.jsonl'])
  const again = await batch(url, ['results', id, '-o', 'results.jsonl'])
  writeFileSync(join(folder, 'results.jsonl'), 'old')
  const forced = await batch(url, ['results', id, '-o', 'results.jsonl', '--force'])

  expect(written.stdout).toMatch(
    new RegExp(`^Wrote the results of ${id} to results.jsonl \\(\\d+ B\\)\\.\n$`),
  )
  expect(again).toMatchObject({
    code: 1,
    stderr: 'Error: results.jsonl exists. Name another file, or allow it to be replaced: --force.\n',
  })
  expect(forced.code).toBe(0)
  expect(idsOf(readFileSync(join(folder, 'results.jsonl'), 'utf8'))).toEqual(['a'])
  expect(existsSync(join(folder, 'results.jsonl.part'))).toBe(false)
})

test('without a server, the error names the command that starts one', async () => {
  const { url, close } = await listen(() => {})
  await close()

  expect((await batch(url, ['list'])).stderr).toMatch(
    /^Error: no server answers at .* Start one: modelmount serve\n$/,
  )
})

test('without a database, the error names the flag', async () => {
  const { url } = await serve({ database: undefined })

  const { stderr } = await batch(url, ['submit', '-'], anthropic('a'))

  expect(stderr).toMatch(/^Error: Batches and files need a database\. .*`database` \(--data\)/)
})

test('lists batches of both APIs together, in pages', async () => {
  const server = new Server((await serve()).url, fetch)
  const ids: string[] = []
  for (let number = 0; number < 3; number++)
    for (const line of [anthropic, openai]) ids.unshift(await submitted(server, line('a')))

  const whole = (await listAll(server, 10, undefined)).map(({ id }) => id)
  const first = await listAll(server, 2, undefined)
  const second = await listAll(server, 10, first.at(-1)?.id)

  // OpenAI's API has the time in seconds.
  expect(whole.toSorted()).toEqual(ids.toSorted())
  for (const prefix of ['batch_', 'msgbatch_'])
    expect(whole.filter((id) => id.startsWith(prefix))).toEqual(ids.filter((id) => id.startsWith(prefix)))
  expect([...first, ...second].map(({ id }) => id)).toEqual(whole)
})

test('an error of the server ends the upload', async () => {
  const { url } = await serve({ batches: { maxRequests: 100 } })
  const { lines, ...requests } = await openRequests('-', manyRequests())

  await expect(anthropicApi.submit(new Server(url, fetch), requests, lines)).rejects.toThrow(
    new ServerError(400, 'requests: A batch can have at most 100 requests.'),
  )
})

async function* manyRequests(): AsyncGenerator<Uint8Array> {
  for (let number = 0; number < 200_000; number++) yield Buffer.from(anthropic(`item-${number}`))
}

test('a batch whose file the server rejects is an error with the line', async () => {
  const { url } = await serve()

  const { code, stdout, stderr } = await batch(
    url,
    ['submit', '-', '--wait'],
    openai('a') + openai('b').replace('POST', 'GET') + openai('c').replace('POST', 'PUT'),
  )

  expect([code, stdout]).toEqual([1, expect.stringMatching(/^batch_/)])
  expect(stderr).toMatch(/^Error: batch_\S+ has failed\. line 2: .*method.*modelmount batch status batch_/m)
})

test('an upload without a batch is deleted', async () => {
  const { url, llm } = await serve()

  const { code, stderr } = await batch(
    url,
    ['submit', '-'],
    openai('a').replace('/v1/chat/completions', '/v1/moderations'),
  )

  expect([code, stderr]).toEqual([1, expect.stringContaining('endpoint')])
  expect((await llm.batches.files.list({ limit: 10 })).files).toEqual([])
})

test('waiting outlives failures of the server, but not a wrong id', async () => {
  const states = [
    Response.json({ error: { message: 'Overloaded' } }, { status: 529 }),
    Response.json({ error: { message: 'Restarting' } }, { status: 503 }),
  ]
  const { url } = await serve()
  const id = await submitted(new Server(url, fetch), anthropic('a') + anthropic('b'))
  let calls = 0
  const server = new Server(url, async (request) => (calls++ > 0 && states.shift()) || fetch(request))
  const out = { isTTY: false, columns: 80, write: () => true } as never

  expect(await waitForEnd(server, anthropicApi, id, out)).toMatchObject({ isEnded: true })
  await expect(waitForEnd(server, openaiApi, 'batch_none', out)).rejects.toThrow('Batch not found.')
})

/** Submits requests, and returns the id of the batch. */
async function submitted(server: Server, text: string): Promise<string> {
  const { lines, ...requests } = await openRequests('-', [Buffer.from(text)] as never)
  const api = requests.format === 'openai' ? openaiApi : anthropicApi
  return (await api.submit(server, requests, lines)).id
}

function openGate() {
  let open: () => void = () => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open: () => open(), passed }
}

async function untilCompleted(llm: Llm, id: string, count: number): Promise<void> {
  for await (const { counts } of llm.batches.watch(id)) if (counts.succeeded >= count) return
}
