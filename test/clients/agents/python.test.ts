/** SDKs in Python: OpenAI's Agents SDK, pydantic-ai, LiteLLM, and LangChain with its standard tests. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { root, run } from '../../packaging/npm.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import { type RefusingProxy, refuseOthers } from './refusing-proxy.ts'
import { type AgentServer, serveInstructed, serveTiny } from './servers.ts'
import { labelOf, pairsOf, type Results } from './situations.ts'

const clients = [
  ...['openai-agents, responses', 'openai-agents, chats'],
  ...['pydantic-ai, OpenAI chats', 'pydantic-ai, OpenAI responses', 'pydantic-ai, Anthropic'],
  ...['litellm, openai/', 'litellm, openai/responses/', 'litellm, anthropic/', 'litellm, ollama_chat/'],
]
/** LangChain's clients, and the names of their standard tests. */
const langChain = {
  'langchain-openai, chats': 'TestOpenAIChats',
  'langchain-openai, responses': 'TestOpenAIResponses',
  'langchain-anthropic': 'TestAnthropic',
  'langchain-ollama': 'TestOllama',
}
const tried = [
  ...pairsOf(clients),
  ...Object.keys(langChain).map((client) => [client, 'built-in model'] as const),
]
const scripts = join(root, 'test/clients/agents/python')
const models = emptyFolder()
let folder: string
let proxy: RefusingProxy
let instructed: AgentServer
let tiny: AgentServer
const results: Record<string, Results[string]> = {}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'python-'))
  await run('python3', ['-m', 'venv', folder], root)
  const install = ['install', '--quiet', '--disable-pip-version-check', '--no-compile']
  await run(join(folder, 'bin/python'), ['-m', 'pip', ...install, '-r', 'requirements.txt'], scripts)
  proxy = await refuseOthers()
  instructed = await serveInstructed(models)
  tiny = await serveTiny(models)
  for (const module of ['openai_agents', 'pydantic_agents', 'lite_llm', 'lang_chain'])
    Object.assign(results, JSON.parse(await python('run.py', module)))
}, 600_000)

afterAll(async () => {
  await Promise.all([proxy, instructed, tiny].map((one) => one?.close()))
  await rm(folder, { recursive: true, force: true })
}, 60_000)

/** Runs Python in the folder of the scripts, with the URLs of the servers, and returns its output. */
async function python(...args: readonly string[]): Promise<string> {
  const env = {
    ...{ PATH: process.env.PATH, HOME: folder, PYTHONDONTWRITEBYTECODE: '1', ...proxy.environment },
    ...{ INSTRUCTED_URL: instructed.url, TINY_URL: tiny.url },
    // LiteLLM would download prices, and ask another server for the abilities of a model.
    ...{ LITELLM_LOCAL_MODEL_COST_MAP: 'True', OLLAMA_API_BASE: instructed.url },
  }
  return (await run(join(folder, 'bin/python'), args, scripts, env)).stdout
}

async function versionOf(packageName: string): Promise<string> {
  const pinned = await readFile(join(scripts, 'requirements.txt'), 'utf8')
  return pinned.match(new RegExp(`^${packageName}\\b.*==(.*)$`, 'm'))?.[1] ?? '?'
}

test('each result of the scripts has a test', () => {
  const found = Object.entries(results).flatMap(([client, outcomes]) =>
    Object.keys(outcomes).map((situation) => `${client}: ${situation}`),
  )

  expect(found.sort()).toEqual(tried.map(([client, situation]) => `${client}: ${situation}`).sort())
})

test.for(tried)('%s: %s', async ([client, situation], { task }) => {
  expect(results[client]?.[situation]).toBeNull()

  task.meta.cell = { mount: 'Agents', client: await labelOf(client, versionOf), situation, outcome: 'ok' }
})

test.for(Object.entries(langChain))(
  "%s: LangChain's standard tests",
  { timeout: 130_000 },
  async ([client, name], { task }) => {
    const output = await python(
      '-m',
      'pytest',
      '-q',
      '-p',
      'no:cacheprovider',
      '-k',
      name,
      'test_standard.py',
    )

    const counts = output.match(/^(\d+ passed)(?:, (\d+ skipped))?.* in /m)
    expect(counts, output).not.toBeNull()
    const outcome = counts?.slice(1).join(', ') ?? ''
    const cell = {
      mount: 'Agents',
      client: await labelOf(client, versionOf),
      situation: 'standard tests',
      outcome,
    }
    task.meta.cell = cell
  },
)

test('no request failed, and none went to another machine', () => {
  expect([...instructed.errors, ...tiny.errors]).toEqual([])
  expect([...proxy.hosts]).toEqual([])
})
