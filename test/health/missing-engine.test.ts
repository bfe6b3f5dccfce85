/** An app on a machine without the engine: it starts, and says at once why no model will run. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, type LlmOptions } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect, onTestFinished, test } from 'vitest'

const message = expect.stringMatching(
  /^The engine for \S+ is not installed\. Install it with: npm install @node-llama-cpp\/\S+@3\.22\.1$/,
)

/** An app on a machine where node-llama-cpp is installed without its native code, and the warnings that the app logs. */
async function startApp(options: LlmOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'no-engine-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const library = join(folder, 'node_modules/node-llama-cpp')
  mkdirSync(library, { recursive: true })
  writeFileSync(join(library, 'package.json'), '{ "name": "node-llama-cpp", "version": "3.22.1" }')
  writeFileSync(join(library, 'index.js'), '')
  const modelProcessPath = join(folder, 'main.js')
  writeFileSync(modelProcessPath, '')
  const warnings: string[] = []
  const logger = { info() {}, error() {}, warn: (_fields: object, message: string) => warnings.push(message) }
  const llm = await createLlm({ local: { modelProcessPath }, logger, ...options })
  onTestFinished(() => llm.close())
  return { llm, warnings }
}

test('the log and the health check of an app name the way out at start', async () => {
  const { llm, warnings } = await startApp()

  expect(warnings).toEqual([message])
  expect((await llm.checkHealth()).checks.engine).toEqual({ status: 'unavailable', reason: message })
})

test('an app with models of another engine is healthy, and only its local models are unavailable', async () => {
  const { llm, warnings } = await startApp({
    engines: { other: scriptedEngine('Hi.', { models: ['small'] }) },
  })

  expect(warnings).toEqual([])
  expect((await llm.checkHealth()).checks.engine).toEqual({ status: 'ok' })
  expect((await llm.checkHealth({ models: ['other/small'] })).status).toBe('ok')
  const local = await llm.checkHealth({ models: ['tiny'] })
  expect(local).toMatchObject({ status: 'unavailable' })
  expect(Object.values(local.checks)).toContainEqual({ status: 'unavailable', reason: message })
})
