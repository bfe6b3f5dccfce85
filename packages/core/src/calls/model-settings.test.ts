/** Settings of models, beside the options of calls and Modelfile defaults. */
import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { createLlm } from '../create-llm.ts'
import type { ModelOptions } from '../options/model-settings.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'

/** Modelfile defaults of the model `bob`. */
const defaults = {
  parameters: { temperature: 0.5, top_k: 5, num_predict: 50, num_ctx: 512, stop: ['Bob:'] },
  messages: [],
  license: [],
}

async function open(modelSettings: Readonly<Record<string, ModelOptions>>) {
  const location = { path: '', sizeBytes: 0, modifiedAt: new Date(0), digest: '', isBuiltIn: false }
  const engine = scriptedEngine('Hi.')
  const llm = await createLlm({
    models: emptyFolder(),
    engine: Object.assign(engine, {
      findModel: (name: string) =>
        name === 'bob' ? { ...location, name: 'bob:latest', defaults } : undefined,
    }),
    modelSettings,
  })
  return { llm, engine }
}

test('settings of a model take the place of its Modelfile', async () => {
  const { llm, engine } = await open({
    bob: { temperature: 0.1, maxTokens: 10, stop: ['.'], contextSize: 2_048 },
  })

  await llm.chat('Hi', { model: 'bob' })

  expect(engine.requests).toMatchObject([
    {
      maxTokens: 10,
      stop: ['.'],
      sampling: { temperature: 0.1, topK: 5 },
      load: { defaultContextSize: 2_048 },
    },
  ])
})

test('options of a call take the place of both', async () => {
  const { llm, engine } = await open({ bob: { temperature: 0.1, maxTokens: 10, stop: ['.'] } })

  await llm.chat('Hi', { model: 'bob', temperature: 1, maxTokens: 5, stop: ['!'] })

  expect(engine.requests).toMatchObject([
    { maxTokens: 5, stop: ['!'], sampling: { temperature: 1, topK: 5 } },
  ])
})

test('a pattern matches a model without a Modelfile, and no other model', async () => {
  const { llm, engine } = await open({ 'qwen*': { topK: 20 } })

  await llm.chat('Hi', { model: 'qwen3:8b' })
  await llm.chat('Hi', { model: 'tiny' })

  expect(engine.requests.map(({ sampling }) => sampling)).toEqual([{ topK: 20 }, {}])
})

test('a caller without the scope `models` gets the context size of the settings, and cannot change it', async () => {
  const { llm, engine } = await open({ tiny: { contextSize: 2_048 } })
  const input = { kind: 'text', prompt: ['Hi'] } as const

  for await (const _event of await llm
    .as({ id: 'ann' })
    .generate({ model: 'tiny', input, load: { contextSize: 64 } }));
  for await (const _event of await llm.generate({ model: 'tiny', input, load: { contextSize: 64 } }));

  expect(engine.requests.map(({ load }) => load)).toEqual([
    { defaultContextSize: 2_048 },
    { contextSize: 64 },
  ])
})

test('embeddings, counts and loads get the context size, too', async () => {
  const { llm } = await open({ tiny: { contextSize: 2_048 } })

  await llm.load('tiny')

  expect(llm.loaded()).toMatchObject([{ name: 'tiny', contextSize: 2_048 }])
})

test.each([
  [{ temperature: 101 }, "`modelSettings['tiny'].temperature`: Too big: expected number to be <=100"],
  [{ maxTokens: -1 }, "`modelSettings['tiny'].maxTokens`: "],
  [{ stop: 'end' }, "`modelSettings['tiny'].stop`: "],
  [{ dry: { strength: -1 } }, "`modelSettings['tiny'].dry.strength`: "],
])('the settings %j are rejected at the start', async (settings, message) => {
  await expect(open({ tiny: settings as ModelOptions })).rejects.toThrow(message)
})
