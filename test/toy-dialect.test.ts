/** A new dialect needs only a folder and an entry in the list of dialects. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type * as Core from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import express from 'express'
import request from 'supertest'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { emptyFolder } from './support/empty-folder.ts'

const toy = `
import { collect } from '../../engine/events.ts'
import { invalidRequest, type LlmError } from '../../errors.ts'
import type { Generation } from '../../calls/generation.ts'
import { text } from '../../http/respond.ts'
import { sse } from '../../http/streams.ts'
import { defineDialect, type Handler } from '../dialect.ts'

const chat: Handler = async ({ request, llm, onError }) => {
  const { say, stream = false } = (await request.json()) as { say?: string; stream?: boolean }
  if (say === undefined) throw invalidRequest('Say something.')
  const content = [{ type: 'text', text: say }] as const
  const input = { kind: 'chat', messages: [{ role: 'user', content }] } as const
  const generation = await llm.generate({ model: 'toy', input }, { signal: request.signal, stream })
  return stream ? sse(frames(generation), { onError }) : text((await collect(generation)).text)
}

async function* frames(generation: Generation): AsyncGenerator<string> {
  for await (const event of generation) if (event.type === 'text') yield \`data: \${event.text}\\n\\n\`
}

const sayError = ({ code, message }: LlmError): string => \`\${code}! \${message}\`

export const toy = defineDialect({
  name: 'toy',
  isSpokenBy: ({ path }) => path.startsWith('/toy/'),
  home: 'Toys are running',
  requestIdHeader: 'x-toy-id',
  renderError: (error) => ({ ...text(sayError(error)), status: 418 }),
  renderErrorFrame: (error) => \`event: oops\\ndata: \${sayError(error)}\\n\\n\`,
  routes: [['POST', '/toy/chat', chat]],
})
`

/** Compiles only if the type `DialectName` includes the new dialect. */
const choosing = `
import { type DialectName, routesFor } from './index.ts'

const name: DialectName = 'toy'
routesFor([name])
`

const root = fileURLToPath(new URL('..', import.meta.url))
const models = emptyFolder()
let folder: string
let core: typeof Core
let llmRouter: (llm: Core.Llm, options?: object) => express.Router

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'modelmount-toy-'))
  const src = join(folder, 'src')
  const list = join(src, 'dialects/index.ts')
  await cp(join(root, 'packages/core/src'), src, {
    recursive: true,
    filter: (path) => !/\.test\.ts$/.test(path),
  })
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))

  // Add the folder of the dialect.
  await mkdir(join(src, 'dialects/toy'))
  await writeFile(join(src, 'dialects/toy/index.ts'), toy)
  // Add the dialect to the list, and import it.
  const without = await readFile(list, 'utf8')
  const line = /^(const dialects = \[.+)\] as const$/m
  expect(without).toMatch(line)
  await writeFile(list, `import { toy } from './toy/index.ts'\n${without.replace(line, '$1, toy] as const')}`)

  await build(folder)
  core = await import(join(folder, 'dist/index.js'))
  // Load the unchanged adapter with the modified core.
  vi.doMock('@modelmount/core', () => core)
  const adapter = await import(join(folder, 'dist/dialects/adapter.js'))
  vi.doMock('@modelmount/core/adapter', () => adapter)
  llmRouter = (await import('../packages/express/src/router.ts')).llmRouter
}, 120_000)

afterAll(() => rm(folder, { recursive: true }))

async function build(folder: string): Promise<void> {
  const config = {
    extends: join(root, 'tsconfig.base.json'),
    compilerOptions: { rootDir: 'src', outDir: 'dist', composite: false },
    include: ['src'],
  }
  await writeFile(join(folder, 'src/choosing.ts'), choosing)
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  await promisify(execFile)(process.execPath, [tsc, '-p', folder]).catch(({ stdout }) => {
    throw new Error(stdout)
  })
}

async function appOf(
  script: Parameters<typeof scriptedEngine>[0],
  options: Parameters<typeof llmRouter>[1] = {},
) {
  const llm = await core.createLlm({ engine: scriptedEngine(script), models })
  return express().use(llmRouter(llm, { unknownRoutes: 'error', ...options }))
}

test('the route of a new dialect responds with and without streaming', async () => {
  const app = await appOf('Beep boop.')

  const whole = await request(app).post('/toy/chat').send({ say: 'Hello' })
  const streamed = await request(app).post('/toy/chat').send({ say: 'Hello', stream: true })

  expect([whole.status, whole.text]).toEqual([200, 'Beep boop.'])
  expect(whole.headers['x-toy-id']).toMatch(/^req_/)
  expect(streamed.text).toBe('data: Beep\n\ndata:  boop.\n\n')
})

test('a new dialect renders errors before and during a stream, and for unknown routes', async () => {
  const app = await appOf(['Beep', new core.LlmError('upstream', 'Out of batteries.')])

  const refused = await request(app).post('/toy/chat').send({})
  const unknown = await request(app).get('/toy/box')
  const streamed = await request(app).post('/toy/chat').send({ say: 'Hello', stream: true })

  expect([refused.status, refused.text]).toEqual([418, 'invalid_request! Say something.'])
  expect([unknown.status, unknown.text]).toEqual([418, 'not_found! Invalid URL (GET /toy/box)'])
  expect(streamed.text).toBe('data: Beep\n\nevent: oops\ndata: upstream! Out of batteries.\n\n')
})

test('a new dialect can serve the text at the mount point', async () => {
  // The types of the adapter do not include the new name.
  const dialects = ['toy'] as unknown as readonly Core.DialectName[]
  const { text } = await request(await appOf('Beep boop.', { dialects })).get('/')

  expect(text).toBe('Toys are running')
})

test('a new dialect does not change the responses of the other dialects', async () => {
  const app = await appOf('Beep boop.')
  const messages = [{ role: 'user', content: 'Hello' }]

  const openai = await request(app).post('/v1/chat/completions').send({ model: 'tiny', messages })
  const anthropic = await request(app).post('/v1/messages').send({ model: 'tiny', messages, max_tokens: 9 })
  const unknown = await request(app).get('/v1/nope')

  expect(openai.body.choices[0].message.content).toBe('Beep boop.')
  expect(anthropic.body.content[0].text).toBe('Beep boop.')
  expect(unknown.body.error.type).toBe('invalid_request_error')
})
