import { type Caller, createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { afterAll, expect, test } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { createModelmount, type ModelmountProviderSettings } from './provider.ts'

const engine = scriptedEngine('Hello.')
const llm = await createLlm({ engine, models: emptyFolder() })

afterAll(() => llm.close())

test('a caller that is passed as the settings is an error, since it would call as the app', () => {
  const caller: Caller = { id: 'ada' }

  expect(() => createModelmount(llm, caller as ModelmountProviderSettings)).toThrow(
    'id: unknown setting of createModelmount(). The only setting is `caller`.',
  )
})

test('a caller that is missing is an error, too', () => {
  const settings = { caller: undefined } as unknown as ModelmountProviderSettings

  expect(() => createModelmount(llm, settings)).toThrow(
    'caller: expected a caller, got undefined. For calls of the app itself, leave it out.',
  )
})

test('the provider itself and languageModel() return the same kind of model', () => {
  const modelmount = createModelmount(llm)

  for (const model of [modelmount('tiny'), modelmount.languageModel('tiny')])
    expect(model).toMatchObject({ specificationVersion: 'v3', provider: 'modelmount', modelId: 'tiny' })
})

test('a model without a name is an error', () => {
  const modelmount = createModelmount(llm) as (modelId?: string) => unknown

  expect(() => modelmount()).toThrow("modelId: expected the name of a model, such as 'tiny'.")
})

test('there are no image models', () => {
  expect(() => createModelmount(llm).imageModel('tiny')).toThrow(
    expect.objectContaining({ name: 'AI_NoSuchModelError' }),
  )
})

test('an invalid caller is an error of the call', async () => {
  const modelmount = createModelmount(llm, { caller: { id: '' } })
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }]

  await expect(modelmount('tiny').doGenerate({ prompt })).rejects.toMatchObject({
    name: 'AI_APICallError',
  })
})

test('a call whose signal has aborted rejects with the reason of the signal', async () => {
  const reason = new Error('The user left.')
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }]
  const options = { prompt, abortSignal: AbortSignal.abort(reason) }
  const modelmount = createModelmount(llm)

  await expect(modelmount('tiny').doGenerate(options)).rejects.toBe(reason)
  await expect(
    modelmount.embeddingModel('tiny').doEmbed({ values: ['Hi'], abortSignal: options.abortSignal }),
  ).rejects.toBe(reason)
})

test('raw chunks are the events of the engine', async () => {
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }]
  const { stream } = await createModelmount(llm)('tiny').doStream({ prompt, includeRawChunks: true })

  const types: unknown[] = []
  for await (const part of stream)
    if (part.type === 'raw') types.push((part.rawValue as { type: string }).type)

  expect(types).toEqual(['start', 'text', 'end'])
})
