import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import type { Token } from 'node-llama-cpp'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { chatMl, parseChatTemplate } from '../../../template/jinja.ts'
import type { CacheLifetime, GenerateRequest, Message } from '../../request.ts'
import { receive, send } from '../ipc/framing.ts'
import { type CallType, FromProcess } from '../ipc/messages.ts'
import { ClientConnection, type ConnectionHost } from './client-connection.ts'
import type { RuntimeModel } from './model.ts'
import { type GenerationJob, nothingCached } from './runner.ts'
import { TenantCpu } from './workers/cpu-budget.ts'

const template = { source: chatMl, bosToken: '', eosToken: '' }
const renderChat = parseChatTemplate(template)
const tokensOf = (text: string): Token[] => [...text].map((one) => (one.codePointAt(0) ?? 0) as Token)
const textOf = (tokens: readonly Token[]): string => String.fromCodePoint(...tokens)

const rendered: string[] = []
const tokenized: string[] = []
const jobs: GenerationJob[] = []
const closers: (() => void)[] = []
let server: Server

/** A model whose tokens are characters, and which generates nothing. */
const model: Partial<RuntimeModel> = {
  contextSize: 1_000,
  vocabularySize: 0x11_0000,
  template,
  tokenize: async (text) => {
    tokenized.push(text)
    return tokensOf(text)
  },
  detokenize: textOf,
  detokenizeWithSpecial: textOf,
  runner: {
    run: async (job) => {
      jobs.push(job)
      return 'aborted'
    },
    isDecoding: false,
    activity: { activeSequences: 0, waitingSequences: 0, ...nothingCached },
    wake: () => {},
    deleteStates: async () => 0,
    cachedLength: () => 0,
    whenIdle: async () => {},
  },
}
const host: ConnectionHost = {
  renderer: {
    render: async ({ messages, options }) => {
      const text = renderChat(messages, options)
      rendered.push(text)
      return text
    },
  },
  grammars: { build: async () => undefined },
  progress: { steps: 0 },
  tenantCpu: new TenantCpu(),
  model: Promise.resolve(model as RuntimeModel),
  activity: undefined,
  isShuttingDown: false,
  onCall: () => {},
  onCallEnd: () => {},
  wake: () => {},
  release: () => {},
  onJoin: () => {},
  onClose: () => {},
  watchLoad: () => {},
  yieldMemory: () => false,
}

beforeEach(async () => {
  for (const list of [rendered, tokenized, jobs]) list.length = 0
  server = createServer((socket) => void new ClientConnection(socket, host)).listen(0, '127.0.0.1')
  await once(server, 'listening')
})

afterEach(async () => {
  for (const close of closers.splice(0)) close()
  server.close()
  await once(server, 'close')
})

interface ConnectedApp {
  /** Resolves with the id of the call. Rejects with the error of the process. */
  call(type: CallType, request: GenerateRequest, countedBy?: number): Promise<number>
}

function connectApp(): ConnectedApp {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  closers.push(() => socket.destroy())
  const ends = new Map<number, (error: unknown) => void>()
  receive(socket, (message) => {
    const parsed = FromProcess.parse(message)
    if (parsed.type === 'done') ends.get(parsed.id)?.(parsed.error)
  })
  return {
    call: (type, request, countedBy) =>
      new Promise((resolve, reject) => {
        const id = ends.size + 1
        ends.set(id, (error) => (error === undefined ? resolve(id) : reject(error)))
        const owner = { tenant: 'ann', weight: 1, background: false }
        send(socket, { type, id, request, ...owner, ...(countedBy !== undefined && { countedBy }) })
      }),
  }
}

const say = (role: string, text: string, cache: CacheLifetime): Message => ({
  role,
  content: [{ type: 'text', text, cache }],
})
const chat: GenerateRequest = {
  model: 'tiny',
  input: {
    kind: 'chat',
    messages: [
      say('system', 'Be brief.', '1h'),
      say('user', 'Hi', '5m'),
      say('assistant', 'Yes?', '5m'),
      say('user', 'No.', '5m'),
    ],
  },
}
const prompt = renderChat(chat.input.kind === 'chat' ? chat.input.messages : [])

test('a chat with four breakpoints is rendered and tokenized twice, its count included', async () => {
  const app = connectApp()

  const countedBy = await app.call('count', chat)
  await app.call('generate', chat, countedBy)

  expect(jobs.map((job) => textOf(job.prompt))).toEqual([prompt])
  expect(jobs[0]?.breakpoints).toHaveLength(4)
  expect(rendered).toHaveLength(2)
  expect(tokenized).toEqual(rendered)
  expect(rendered[0]).toBe(prompt)
})

test('a counted prompt gives the same prompt and breakpoints as one that was not counted', async () => {
  const app = connectApp()

  const countedBy = await app.call('count', chat)
  await app.call('generate', chat, countedBy)
  await app.call('generate', chat)

  const [counted, uncounted] = jobs.map(({ prompt, breakpoints }) => ({ prompt, breakpoints }))
  expect(counted).toEqual(uncounted)
})

test('the tokens of a count are used once, and each answer without them tokenizes its prompt', async () => {
  const app = connectApp()

  const countedBy = await app.call('count', chat)
  for (const id of [countedBy, countedBy, 99]) await app.call('generate', chat, id)

  expect(jobs.map((job) => textOf(job.prompt))).toEqual([prompt, prompt, prompt])
  expect(tokenized).toHaveLength(2 + 2 + 2)
})

test('the tokens of a count are not used on another connection', async () => {
  const countedBy = await connectApp().call('count', chat)

  await connectApp().call('generate', chat, countedBy)

  expect(jobs.map((job) => textOf(job.prompt))).toEqual([prompt])
  expect(tokenized).toHaveLength(3)
})

test('after an estimate, the prompt is rejected as without a count', async () => {
  const text = 'a'.repeat(3_000)
  const long: GenerateRequest = { model: 'tiny', input: { kind: 'text', prompt: [text], template: false } }
  const app = connectApp()

  const countedBy = await app.call('count', long)

  await expect(app.call('generate', long, countedBy)).rejects.toMatchObject({
    code: 'context_length',
    details: { inputTokens: 3_000, contextSize: 1_000 },
  })
  expect(tokenized).toEqual([text, text])
})
