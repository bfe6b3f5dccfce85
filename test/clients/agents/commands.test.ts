/** Codex, opencode, Continue and Claude Code as they are published. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'
import { type CommandAgent, claudeCode, codex, continueDev, opencode, type Place } from './command-agents.ts'
import { installLocked, versionIn } from './install.ts'
import { type RefusingProxy, refuseOthers } from './refusing-proxy.ts'
import { type AgentServer, serveInstructed, serveTiny } from './servers.ts'

/** A red image of one pixel. */
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC'
const models = emptyFolder()
let installed: string
let project: string
let folder: string
let proxy: RefusingProxy
let instructed: AgentServer
let tiny: AgentServer

beforeAll(async () => {
  installed = await mkdtemp(join(tmpdir(), 'agents-'))
  project = await installLocked('commands', installed)
  proxy = await refuseOthers()
  instructed = await serveInstructed(models)
  tiny = await serveTiny(models)
}, 300_000)

afterAll(async () => {
  await Promise.all([proxy, instructed, tiny].map((one) => one?.close()))
  await rm(installed, { recursive: true, force: true })
}, 60_000)

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agent-'))
  await writeFile(join(folder, 'red.png'), Buffer.from(pixel, 'base64'))
})

afterEach(async () => {
  const errors = [instructed, tiny].flatMap((server) => server.errors.splice(0))
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  expect(errors).toEqual([])
})

/** What each agent is asked. Returns how the answer ended, for the table. */
const situations: Readonly<Record<string, (agent: CommandAgent, place: Place) => Promise<string>>> = {
  'built-in model': async (agent, place) => {
    const text = await agent.ask({ prompt: 'Hello', url: tiny.url, isShort: true }, place)
    expect(text.trim()).not.toBe('')
    return 'ok'
  },
  tool: async (agent, place) => {
    const text = await agent.ask(
      { prompt: agent.tools.shell('echo $((40 + 2))'), url: instructed.url },
      place,
    )
    expect(text).toMatch(/^Results: .*\b42\b/s)
    return 'ok'
  },
  'parallel calls': async (agent, place) => {
    const prompt = ['$((40 + 2))', '$((50 + 3))'].map((sum) => agent.tools.shell(`echo ${sum}`)).join('\n')
    const text = await agent.ask({ prompt, url: instructed.url }, place)
    // Claude Code sends results in the order in which the calls end.
    expect(text).toMatch(/^Results: .* \| /s)
    expect(text.match(/\b(42|53)\b/g)).toHaveLength(2)
    return 'ok'
  },
  'MCP server': async (agent, place) => {
    const prompt = `call ${agent.tools.weather} {"city":"Paris"}`
    expect(await agent.ask({ prompt, url: instructed.url }, place)).toMatch(/^Results: .*rain in Paris/s)
    return 'ok'
  },
  image: async (agent, place) => {
    const image = join(folder, 'red.png')
    const prompt =
      agent.image === 'prompt' ? 'What is this?' : `call Read ${JSON.stringify({ file_path: image })}`
    const question = { prompt, url: instructed.url, ...(agent.image === 'prompt' && { image }) }
    expect(await agent.ask(question, place)).toContain('[An image, which this model cannot see.]')
    return 'a note'
  },
  patch: async (agent, place) => {
    const patch = '*** Begin Patch\n*** Add File: a.txt\n+Hello\n*** End Patch\n'
    const prompt = `call apply_patch ${JSON.stringify({ input: patch })}`
    await agent.ask({ prompt, url: instructed.url, model: agent.patchModel }, place)
    expect(await readFile(join(folder, 'a.txt'), 'utf8')).toBe('Hello\n')
    return 'ok'
  },
  'second turn': async (agent, place) => {
    const ask = async (prompt: string, resumes: boolean): Promise<number> => {
      const text = await agent.ask({ prompt, url: instructed.url, resumes }, place)
      expect(text).toContain(prompt)
      return Number(text.match(/^User message (\d+): /)?.[1])
    }
    const first = await ask('Hello', false)
    expect(await ask('And again?', true)).toBeGreaterThan(first)
    return 'ok'
  },
}

describe.each([codex, opencode, continueDev, claudeCode])('$name', (agent) => {
  const can: Readonly<Record<string, unknown>> = { image: agent.image, patch: agent.patchModel }
  const tried = Object.entries(situations).filter(([name]) => !(name in can) || can[name])

  beforeAll(() => proxy.hosts.clear())

  test.for(tried)('%s', { timeout: 130_000 }, async ([situation, attempt], { task }) => {
    const client = await clientOf(agent)
    const place = { project, folder, environment: proxy.environment }

    const outcome = await attempt(agent, place)

    task.meta.cell = { mount: 'Agents', client, situation, outcome }
  })

  test('asks for no other machine', async ({ task }) => {
    const client = await clientOf(agent)

    expect([...proxy.hosts]).toHaveLength(agent.otherHosts)
    const outcome = agent.otherHosts === 0 ? 'none' : `${agent.otherHosts}, refused`
    task.meta.cell = { mount: 'Agents', client, situation: 'other hosts', outcome }
  })
})

const clientOf = async ({ name, packageName }: CommandAgent): Promise<string> =>
  `${name} ${await versionIn(project, packageName)}`
