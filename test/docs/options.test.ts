/** Runs code of the pages that passes options to `createLlm()` and to `recordingEngine()`. */
import { createLlm, type Llm, type LlmOptions } from '@modelmount/core'
import { recordingEngine } from '@modelmount/core/testing'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { codeBelow } from '../support/pages.ts'

/** Returns the blocks of one section, without the imports. */
const blocksOf = (page: string, heading: string): readonly string[] =>
  codeBelow(`docs/guides/${page}.md`, heading).map((code) => code.replaceAll(/^import .*$/gm, ''))

/** Runs the code with an empty folder of models, and returns the values of the named variables. */
async function run(code: string, names: string, env: Readonly<Record<string, string>> = {}) {
  const folder = emptyFolder()
  const scope = {
    process: { env },
    createLlm: (options: LlmOptions) => createLlm({ models: folder, ...options }),
    recordingEngine: (engine: never, _file: string, options: object) =>
      recordingEngine(engine, env.FILE ?? '', options),
  }
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor
  const body = new AsyncFunction(...Object.keys(scope), `${code}; return { ${names} }`)
  const values = await body(...Object.values(scope))
  const { llm } = values as { readonly llm?: Llm }
  if (llm) onTestFinished(() => llm.close())
  return values
}

test('the page about tests records an answer, and replays it', async () => {
  const [code = ''] = blocksOf('testing', 'Recorded answers')
  const FILE = `${emptyFolder()}/answers.json`
  const recording = await run(code, 'llm', { RECORD: '1', FILE })
  const recorded: string = (await recording.llm.chat('Tell me a short story.', { model: 'tiny' })).text

  const { llm } = await run(code, 'llm', { FILE })
  const { text } = await llm.chat('Tell me a short story.', { model: 'tiny' })

  expect(text).toBe(recorded)
  expect(text).not.toBe('')
})

test('the functions of the page remove dates and seeds', async () => {
  const [, code = ''] = blocksOf('testing', 'Recorded answers')

  const { normalize, normalizeSeed } = await run(code, 'normalize, normalizeSeed')

  expect(normalize({ input: { prompt: ['On 2026-01-31.'] } })).toEqual({ input: { prompt: ['On DATE.'] } })
  expect(normalizeSeed({ model: 'tiny', sampling: { seed: 5, topK: 1 } })).toEqual({
    ...{ model: 'tiny', sampling: { topK: 1 } },
  })
})

test('the settings per model of the page are valid', async () => {
  const [code = ''] = blocksOf('models', 'Settings per model')

  const { llm } = await run(code, 'llm')
  await llm.load('tiny')

  expect(llm.loaded()).toMatchObject([{ name: 'tiny:latest', settings: { maxTokens: 2_048 } }])
})

test('the credentials of the page are valid', async () => {
  const [code = ''] = blocksOf('models', 'Credentials')

  const { llm } = await run(code, 'llm', { REGISTRY_PASSWORD: 'secret', REGISTRY_TOKEN: 'token' })

  expect(await llm.models.list()).toHaveLength(1)
})
