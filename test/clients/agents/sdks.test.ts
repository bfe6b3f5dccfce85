/** SDKs in JavaScript: the AI SDK with five providers, OpenAI's Agents SDK, LangChain, and version 7 of OpenAI's client. */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { nodeOf, root, run } from '../../packaging/npm.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import type { Listening } from '../../support/listen.ts'
import { plainProxy } from '../../support/plain-proxy.ts'
import { type ScriptedServer, serveScripts } from '../scripted-server.ts'
import { installLocked, versionIn } from './install.ts'
import { type AgentServer, prefix, serveInstructed, serveTiny } from './servers.ts'
import { labelOf, pairsOf, type Results } from './situations.ts'

/** A project with SDKs, and the modules of `sdks/` that try them. */
interface Group {
  readonly project: string
  /** Version of Node that the SDKs need. */
  readonly node: string
  readonly modules: readonly string[]
  readonly clients: readonly string[]
  /** Tests of other situations, by their client. */
  readonly others: readonly (readonly [client: string, situation: string])[]
}

const providers = [
  ...['@ai-sdk/openai', '@ai-sdk/openai-compatible', '@ai-sdk/anthropic'],
  ...['ollama-ai-provider-v2', 'ai-sdk-ollama'],
]
const details = [
  'OpenAI 7: a cut answer makes parse() throw a LengthFinishReasonError',
  'OpenAI 7: the helpers join text and calls of a stream',
  'OpenAI 7: vectors in base64 become numbers',
  'OpenAI 7: the helpers join text and calls of a streamed response',
  "AI SDK with OpenAI's provider: text, calls and reasoning, of chats and responses",
  "AI SDK with Anthropic's provider: text, calls and thinking",
  "AI SDK with Anthropic's provider: an empty answer, and a call without arguments",
  "AI SDK with Anthropic's provider: errors have our text, and a full queue is tried again",
  "LangChain with OpenAI's API: text and calls, of chats and responses",
  "LangChain with Anthropic's API: text, calls, objects and usage",
  "LangChain with Anthropic's API: an empty answer, and a call without arguments",
]
const groups: readonly Group[] = [
  {
    ...{ project: 'javascript', node: '22', modules: ['openai', 'ai-sdk', 'agents', 'langchain', 'details'] },
    clients: [
      ...['openai, responses', 'openai, chats'],
      ...providers,
      ...['@openai/agents, responses', '@openai/agents, chats'],
      ...['@langchain/openai, responses', '@langchain/openai, chats'],
      ...['@langchain/anthropic', '@langchain/ollama'],
    ],
    others: [
      ['@ai-sdk/anthropic', 'batch, also behind a proxy'],
      ...details.map((title) => ['details', title] as const),
    ],
  },
  { ...{ project: 'ai-sdk-6', node: '20', modules: ['ai-sdk'], clients: providers, others: [] } },
]

const models = emptyFolder()
let folder: string
let instructed: AgentServer
let tiny: AgentServer
let scripted: ScriptedServer
let proxied: Listening

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sdks-'))
  instructed = await serveInstructed(models)
  tiny = await serveTiny(models)
  scripted = await serveScripts(models)
  proxied = await plainProxy(instructed.url, ({ host, ...headers }) => ({
    ...headers,
    ...{ host: 'internal', 'x-forwarded-host': String(host), 'x-forwarded-proto': 'http' },
  }))
}, 60_000)

afterAll(async () => {
  await Promise.all([proxied, instructed, tiny, scripted].map((server) => server?.close()))
  await rm(folder, { recursive: true, force: true })
}, 60_000)

describe.each(groups.slice(0, inject('isThorough') ? undefined : 1))(
  'SDKs of $project',
  ({ project, node, modules, clients, others }) => {
    let installed: string
    let results: Results

    beforeAll(async () => {
      const install = installLocked(project, folder)
      const program = await nodeOf(node, folder)
      installed = await install
      await cp(join(root, 'test/clients/agents/sdks'), installed, { recursive: true })
      const urls = { instructed: instructed.url, tiny: tiny.url, scripted: scripted.url }
      const all = JSON.stringify({ ...urls, proxied: proxied.url + prefix })
      results = JSON.parse((await run(program, ['run.mjs', all, ...modules], installed)).stdout)
    }, 180_000)

    test('each result of the scripts has a test', () => {
      const tried = Object.entries(results).flatMap(([client, found]) =>
        Object.keys(found).map((situation) => `${client}: ${situation}`),
      )
      const tested = [...pairsOf(clients), ...others].map(([client, situation]) => `${client}: ${situation}`)

      expect(tried.sort()).toEqual(tested.sort())
    })

    test.for([...pairsOf(clients), ...others])('%s: %s', async ([client, situation], { task }) => {
      expect(results[client]?.[situation]).toBeNull()

      if (client === 'details') return
      const label = await labelOf(client, (name) => versionIn(installed, name))
      const sdk = providers.includes(client) ? `AI SDK ${await versionIn(installed, 'ai')}, ` : ''
      task.meta.cell = { mount: 'Agents', client: `${sdk}${label}`, situation, outcome: 'ok' }
    })

    test('no request failed', () => {
      expect([...instructed.errors, ...tiny.errors]).toEqual([])
    })
  },
)
