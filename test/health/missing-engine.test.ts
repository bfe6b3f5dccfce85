/** An app on a machine without the engine: it starts, and says at once why no model will run. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { expect, onTestFinished, test } from 'vitest'

test('the log and the health check of an app name the way out at start', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'no-engine-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  // Outside this repository, so that node-llama-cpp is not found from it.
  const modelProcessPath = join(folder, 'main.js')
  writeFileSync(modelProcessPath, '')
  const warnings: string[] = []
  const logger = { info() {}, error() {}, warn: (_fields: object, message: string) => warnings.push(message) }

  const llm = await createLlm({ local: { modelProcessPath }, logger })
  onTestFinished(() => llm.close())

  const message = 'The engine is not installed. Install it with: npm install node-llama-cpp@3.22.1'
  expect(warnings).toEqual([message])
  expect((await llm.checkHealth()).checks.engine).toEqual({ status: 'unavailable', reason: message })
})
