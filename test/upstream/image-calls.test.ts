/** Images in process, in recordings and batches, with fallbacks, in spending limits and in fleets. */
import { join } from 'node:path'
import { createLlm, type LlmOptions } from '@modelmount/core'
import { type Engine, type GenerateRequest, type ImagePart, LlmError } from '@modelmount/core/engine'
import { recordingEngine, scriptedEngine } from '@modelmount/core/testing'
import { upstreamEngine } from '@modelmount/core/upstream'
import { expect, onTestFinished, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { imagesOf } from '../../packages/core/src/engine/request-input.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { createFleet } from '../support/fleet-servers.ts'
import { images } from '../support/images.ts'
import { sendJson, UpstreamServer } from '../support/upstream-server.ts'

const image: ImagePart = { type: 'image', mediaType: '', data: images.png }
const checked = { type: 'image', mediaType: 'image/png', data: images.png }
const asking = (...content: readonly ImagePart[]): GenerateRequest => ({
  ...{ model: 'eye', input: { kind: 'chat', messages: [{ role: 'user', content }] } },
})

async function start(engine: Engine, options: LlmOptions = {}) {
  const llm = await createLlm({ models: emptyFolder(), engine, ...options })
  onTestFinished(() => llm.close())
  return llm
}

test('an image of an in-process call is checked, and its error has the path in the request', async () => {
  const engine = scriptedEngine('A cat.', { seesImages: true })
  const llm = await start(engine)
  const { text } = await collect(await llm.generate(asking(image)))
  const texts = { kind: 'text', prompt: ['What?'], images: [image] } as const
  await collect(await llm.generate({ model: 'eye', input: texts }))

  expect(text).toBe('A cat.')
  expect(engine.requests.map(({ input }) => imagesOf(input))).toMatchObject([[checked], [checked]])
  await expect(llm.generate(asking(image, { ...image, data: 'AAAA' }))).rejects.toMatchObject({
    ...{ code: 'invalid_request', details: { param: 'input.messages[0].content[1]' } },
  })
})

test.each([true, false])(
  'a recording replays calls with images of a model that sees: %s',
  async (seesImages) => {
    const file = join(emptyFolder(), 'answers.json')
    const request: GenerateRequest = {
      ...{ model: 'eye' },
      input: {
        kind: 'chat',
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'Look.' }] },
          { role: 'assistant', content: [{ type: 'tool-call', id: 'a', name: 'look', arguments: '{}' }] },
          { role: 'tool', content: [{ type: 'tool-result', id: 'a', content: [image] }] },
        ],
      },
    }
    const engine = scriptedEngine('A cat.', { seesImages })
    const recorded = await start(recordingEngine(engine, file, { mode: 'record' }))
    await collect(await recorded.generate(request))
    const replayed = await start(recordingEngine(undefined, file))

    expect((await collect(await replayed.generate(request))).text).toBe('A cat.')
    expect(imagesOf(engine.requests[0]?.input ?? expect.fail())).toHaveLength(seesImages ? 1 : 0)
  },
)

test('an item of a batch may have an image, and one with an invalid image fails alone', async () => {
  const engine = scriptedEngine('A cat.', { seesImages: true })
  const llm = await start(engine, { database: ':memory:' })
  const item = (custom_id: string, data: string) => {
    const content = [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }]
    return {
      custom_id,
      params: { model: 'eye', max_tokens: 9, messages: [{ role: 'user', content }] },
    }
  }
  const { id } = await llm.batches.create([item('good', images.png), item('bad', 'AAAA')])
  const { counts } = await llm.batches.waitUntilEnded(id)

  expect(counts).toMatchObject({ succeeded: 1, errored: 1 })
  expect(engine.requests.map(({ input }) => imagesOf(input))).toMatchObject([[checked]])
})

test('a fallback that sees no images rejects what the first model would see', async () => {
  const away = scriptedEngine(new LlmError('upstream', 'away'), { models: ['eye'], seesImages: true })
  const blind = scriptedEngine('Hi.', { models: ['blind'] })
  const seeing = scriptedEngine('A cat.', { models: ['other'], seesImages: true })
  const llm = await start(scriptedEngine('x'), {
    engines: { away, blind, seeing },
    aliases: { best: ['away/eye', 'seeing/other'], worst: ['away/eye', 'blind/blind'] },
  })

  expect((await collect(await llm.generate({ ...asking(image), model: 'best' }))).text).toBe('A cat.')
  await expect(llm.generate({ ...asking(image), model: 'worst' })).rejects.toMatchObject({
    ...{ code: 'invalid_request', message: 'An image is not supported by this model.' },
  })
  expect(blind.requests).toEqual([])
})

test('a spending limit reserves a fixed number of tokens for an image of any size', async () => {
  const engine = upstreamEngine({
    url: 'http://127.0.0.1:9',
    models: { eye: {}, small: { contextSize: 4_096 } },
  })
  onTestFinished(() => engine.close())
  const large = Buffer.concat([Buffer.from(images.png, 'base64'), Buffer.alloc(1_000_000)])
  const call = { signal: new AbortController().signal }
  const bound = async (model: string, part: ImagePart) =>
    engine.boundTokens?.({ ...asking(part), model }, call)

  expect(await bound('eye', { ...image, data: large.toString('base64') })).toBe(await bound('eye', image))
  expect(await bound('eye', image)).toBe(48_169 + 3 * 32)
  expect(await bound('small', image)).toBe(4_096)
})

test.each([
  [['completion', 'multimodal'], ['completion', 'tools', 'vision'], true],
  [['completion'], ['completion', 'tools'], false],
  [undefined, ['completion', 'tools'], true],
])('a llama-server whose list says %j has the capabilities %j', async (said, capabilities, seesImages) => {
  const server = await UpstreamServer.start()
  onTestFinished(() => server.close())
  server.models = (response) =>
    sendJson(response, {
      models: [{ name: 'small', capabilities: said }],
      data: [{ id: 'small', owned_by: 'llamacpp' }],
    })
  const engine = upstreamEngine({ url: server.url })
  onTestFinished(() => engine.close())
  const found = await engine.findModel?.('small')
  const call = { signal: new AbortController().signal }

  expect(found?.details?.capabilities).toEqual(capabilities)
  expect(engine.seesImages?.({ ...asking(image), model: 'small' }, call)).toBe(seesImages)
})

test('a fleet sends images to replicas whose server does not say that the model is blind', async () => {
  const server = await UpstreamServer.start()
  onTestFinished(() => server.close())
  server.models = (response) => sendJson(response, { data: [{ id: 'small' }] })
  const open = createFleet([server])
  const blind = createFleet([server], { models: { small: { capabilities: ['completion'] } } })
  const request = { ...asking(image), model: 'small' }
  const call = { signal: new AbortController().signal }
  await open.findModel?.('small')
  await blind.findModel?.('small')

  expect([open, blind].map((fleet) => fleet.seesImages?.(request, call))).toEqual([true, false])
})
