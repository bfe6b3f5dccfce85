/** The AI SDK's providers, LangChain and version 7 of OpenAI's client, with heartbeats between all frames. */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyProject, nodeOf, root, run } from '../packaging/npm.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { type ScriptedServer, serveScripts } from './scripted-server.ts'

const packages = [
  ...['openai@7.57.0', 'ai@6.0.326', '@ai-sdk/openai@3.0.141', '@ai-sdk/anthropic@3.0.140', 'zod@4.6.7'],
  ...['@langchain/core@1.4.0', '@langchain/openai@1.5.8', '@langchain/anthropic@1.5.11'],
]
const checks = [
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
const models = emptyFolder()
let folder: string
let server: ScriptedServer
let results: Readonly<Record<string, string | null>>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'clients-'))
  const project = join(folder, 'project')
  const install = emptyProject(project, { type: 'module' }, packages)
  // Version 7 of OpenAI's client needs Node 22.
  const node = await nodeOf('22', folder)
  await install
  await cp(join(root, 'test/clients/others/run.mjs'), join(project, 'run.mjs'))
  server = await serveScripts(models)
  results = JSON.parse((await run(node, ['run.mjs', server.url], project)).stdout)
}, 180_000)

afterAll(async () => {
  await server?.close()
  await rm(folder, { recursive: true, force: true })
}, 60_000)

test('each check of the script has a test', () => {
  expect(Object.keys(results)).toEqual(checks)
})

test.each(checks)('%s', (name) => {
  expect(results[name]).toBeNull()
})
