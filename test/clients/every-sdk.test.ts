/** Every JavaScript SDK on every mount, with the built-in model. */
import { readFileSync } from 'node:fs'
import Anthropic from '@anthropic-ai/sdk'
import Anthropic0 from 'anthropic-sdk-0'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { mounts, type Server, serve } from './mounts.ts'
import { anthropic } from './sdks/anthropic.ts'
import { ollama } from './sdks/ollama.ts'
import { openai } from './sdks/openai.ts'
import { type Sdk, situationNames, situations } from './situations.ts'

/** SDKs by their folder in `node_modules`. */
const sdks = new Map<string, Sdk>([
  ['ollama', ollama],
  ['openai', openai],
  ['@anthropic-ai/sdk', anthropic(Anthropic)],
  ['anthropic-sdk-0', anthropic(Anthropic0 as unknown as typeof Anthropic)],
])

describe.each(Object.entries(mounts))('mounted in %s', (mount, how) => {
  const models = emptyFolder()
  let server: Server

  beforeAll(async () => {
    server = await serve(how, models)
  }, 60_000)

  afterAll(() => server.close())

  describe.each([...sdks])('the SDK %s', (folder, sdk) => {
    const client = `${folder} ${versionOf(folder)}`

    test.for(situationNames)('%s', async (situation, { task }) => {
      const outcome = await situations[situation](sdk, server)
      task.meta.cell = { mount, client, situation, outcome }
    })
  })
})

function versionOf(folder: string): string {
  const file = new URL(`../../node_modules/${folder}/package.json`, import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
