import { expect, test } from 'vitest'
import { LlmError, modelNotFound } from '../errors.ts'
import type { Model } from '../models/model.ts'
import { scriptedEngine } from '../testing/scripted-engine.ts'
import type { Engine, EngineCall } from './engine.ts'
import { EngineSet } from './engine-set.ts'
import type { GenerateEvent } from './events.ts'
import type { ReplicaEvent, ReplicaStatus } from './replicas.ts'
import type { GenerateRequest } from './request.ts'

const live = (): AbortSignal => new AbortController().signal
const input = { kind: 'text', prompt: ['Hi'] } as const

/** Calls with the model that the resolver finds. */
async function callOf(set: EngineSet, name: string): Promise<EngineCall> {
  const model = await set.findModel(name)
  return { signal: live(), ...(model && { model }) }
}

async function all(events: AsyncIterable<GenerateEvent>): Promise<GenerateEvent[]> {
  const read: GenerateEvent[] = []
  for await (const event of events) read.push(event)
  return read
}

/** A `first` engine, and the named engines `gpu` and `Hub`. */
function open(given: { readonly first?: Partial<Engine>; readonly gpu?: Partial<Engine> } = {}) {
  const engines = {
    first: { ...scriptedEngine('first'), ...given.first },
    gpu: { ...scriptedEngine('gpu', { models: ['qwen3:8b', 'tiny:latest', 'meta/llama'] }), ...given.gpu },
    hub: { ...scriptedEngine('hub', { models: ['qwen3:8b', 'gpu/odd'] }) },
  }
  return { ...engines, set: new EngineSet(engines.first, { gpu: engines.gpu, Hub: engines.hub }) }
}

test('an engine gets its models by its own names, and the answer has the full name', async () => {
  const { set, gpu, first } = open()
  const request: GenerateRequest = { model: 'GPU/meta/llama', input }

  const [start, text] = await all(set.generate(request, await callOf(set, request.model)))

  expect(start).toMatchObject({ type: 'start', model: 'gpu/meta/llama' })
  expect(text).toMatchObject({ text: 'gpu' })
  expect(gpu.requests).toMatchObject([{ model: 'meta/llama' }])
  expect(first.requests).toEqual([])
})

test('the call of an engine has the model by its own name, and a name of the store goes to the first engine', async () => {
  const calls: EngineCall[] = []
  const record: Partial<Engine> = {
    countTokens: async (_request, call) => calls.push(call),
  }
  const { set } = open({ first: record, gpu: record })

  await set.countTokens({ model: 'gpu/tiny', input }, await callOf(set, 'gpu/tiny'))
  await set.countTokens({ model: 'tiny', input }, await callOf(set, 'tiny'))

  expect(calls.map(({ model }) => model?.name)).toEqual(['tiny:latest', undefined])
  expect(calls[0]?.model?.engine).toBeUndefined()
})

type Method = Exclude<keyof Engine, 'health' | 'loaded' | 'close' | 'generate'>

const methods: Partial<
  Record<Method, (set: EngineSet, model: string, call: EngineCall) => Promise<unknown>>
> = {
  render: (set, model, call) => set.render({ model, input }, call),
  countTokens: (set, model, call) => set.countTokens({ model, input }, call),
  boundTokens: (set, model, call) => set.boundTokens({ model, input }, call),
  countCachedTokens: (set, model, call) => set.countCachedTokens({ model, input }, call),
  embed: (set, model, call) => set.embed({ model, inputs: ['a'] }, call),
  rerank: (set, model, call) => set.rerank({ model, query: 'a', documents: ['a'] }, call),
  tokenize: (set, model, call) => set.tokenize({ model, text: 'a' }, call),
  detokenize: (set, model, call) => set.detokenize({ model, tokens: [97] }, call),
  tokenPieces: (set, model, call) => set.tokenPieces({ model, tokens: [97] }, call),
  load: (set, model, call) => set.load(model, {}, call),
}

test.each(Object.entries(methods))(
  '%s goes to the engine of the model, and its error has the full name',
  async (name, run) => {
    const fail = async (): Promise<never> => {
      throw new LlmError('upstream', 'The model "qwen3:8b" is ill.', { model: 'qwen3:8b' })
    }
    const { set } = open({ gpu: { [name]: fail } })

    await expect(run(set, 'gpu/qwen3:8b', await callOf(set, 'gpu/qwen3:8b'))).rejects.toMatchObject({
      code: 'upstream',
      message: 'The model "gpu/qwen3:8b" is ill.',
      details: { model: 'gpu/qwen3:8b' },
    })
    await expect(run(set, 'qwen3:8b', { signal: live() })).resolves.not.toThrow()
  },
)

test('an answer that fails has the full name in its error', async () => {
  const { set } = open({ gpu: scriptedEngine(modelNotFound('qwen3:8b')) })
  const { set: found } = open()
  const request: GenerateRequest = { model: 'gpu/qwen3:8b', input }
  const { model } = await callOf(found, request.model)

  await expect(all(set.generate(request, { signal: live(), model: model as Model }))).rejects.toMatchObject({
    code: 'not_found',
    message: 'model "gpu/qwen3:8b" not found',
    details: { model: 'gpu/qwen3:8b', param: 'model' },
  })
})

test('a reader that leaves ends the engine, even before its next event', async () => {
  let hasReturned = false
  const events: AsyncIterable<GenerateEvent> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => {}),
      return: async () => {
        hasReturned = true
        return { done: true, value: undefined }
      },
    }),
  }
  const { set } = open({ gpu: { generate: () => events } })
  const request: GenerateRequest = { model: 'gpu/tiny', input }

  const iterator = set.generate(request, await callOf(set, request.model))[Symbol.asyncIterator]()
  void iterator.next()
  await iterator.return?.()

  expect(hasReturned).toBe(true)
})

test('a name that begins with an engine that does not know it is not found', async () => {
  const { set } = open()
  const call = { signal: live(), alias: 'best' }

  await expect(set.findModel('gpu/odd')).rejects.toMatchObject({ code: 'not_found' })
  expect(() => set.generate({ model: 'gpu/odd', input }, call)).toThrow(
    'model "gpu/odd" not found (alias "best")',
  )
  expect(await set.findModel('tiny')).toBeUndefined()
  expect(await set.findModel('gpux/tiny')).toBeUndefined()
})

test('a model is found by its full name in any case of the engine, with and without the tag `latest`', async () => {
  const { set } = open()
  const nameOf = async (name: string) => (await set.findModel(name))?.name

  expect(await nameOf('GPU/qwen3:8b')).toBe('gpu/qwen3:8b')
  expect(await nameOf('hub/qwen3:8b')).toBe('Hub/qwen3:8b')
  expect(await nameOf('gpu/tiny')).toBe('gpu/tiny:latest')
  expect(await nameOf('gpu/meta/llama:latest')).toBe('gpu/meta/llama')
  expect(await set.findModel('gpu/tiny')).toMatchObject({ engine: 'gpu' })
})

test('the first engine that knows a bare name has the model, also if another one fails', async () => {
  const { set } = open()
  const { set: failing } = open({ gpu: { findModel: async () => Promise.reject(new Error('away')) } })
  const nameOf = async (set: EngineSet, name: string) => (await set.findByBareName(name))?.name

  expect(await nameOf(set, 'qwen3:8b')).toBe('gpu/qwen3:8b')
  expect(await nameOf(failing, 'qwen3:8b')).toBe('Hub/qwen3:8b')
  expect(await nameOf(set, 'gpu/odd')).toBeUndefined()
  expect(await nameOf(set, 'none')).toBeUndefined()
})

test('the lists have the models of all engines, also if one of them fails', async () => {
  const listed = async ({ set }: ReturnType<typeof open>) => (await set.listModels()).map(({ name }) => name)

  expect(await listed(open())).toEqual([
    ...['gpu/qwen3:8b', 'gpu/tiny:latest', 'gpu/meta/llama'],
    ...['Hub/qwen3:8b', 'Hub/gpu/odd'],
  ])
  expect(await listed(open({ gpu: { listModels: () => Promise.reject(new Error('away')) } }))).toEqual([
    ...['Hub/qwen3:8b', 'Hub/gpu/odd'],
  ])
})

test('loaded models have their full names, and are unloaded by them', async () => {
  const { set, gpu } = open()
  await set.load('gpu/tiny', {}, await callOf(set, 'gpu/tiny'))
  await set.load('own', {}, { signal: live() })
  expect(set.loaded().map(({ name }) => name)).toEqual(['own', 'gpu/tiny:latest'])

  await set.unload('own')
  await set.unload('gpu/tiny')

  expect(gpu.loaded()).toEqual([])
  expect(set.loaded()).toEqual([])
})

test('a problem of a named engine is one of its models, and not of the app', async () => {
  const asked: string[] = []
  const health = {
    problem: async () => 'The server is away.',
    problemOf: async ({ name }: Model) => {
      asked.push(name)
      return 'It is away.'
    },
    probe: async ({ name }: Model) => void asked.push(name),
  }
  const { set } = open({ gpu: { health } })
  const model = (await set.findModel('gpu/tiny')) as Model

  expect(await set.health.problem()).toBeUndefined()
  expect(await set.health.problemOf(model, live())).toBe('It is away.')
  await set.health.probe(model, live())
  expect(await set.health.problemOf({ ...model, name: 'tiny:latest' }, live())).toBeUndefined()
  expect(asked).toEqual(['tiny:latest', 'tiny:latest'])
})

test('the prompt states of a tenant are deleted in all engines', async () => {
  const { set } = open({
    first: { deletePromptStates: async () => 1 },
    gpu: { deletePromptStates: async () => 2 },
  })

  expect(await set.deletePromptStates('acme')).toBe(3)
})

test('all engines are closed, even if one of them fails', async () => {
  const closed: string[] = []
  const close = async () => void closed.push('gpu')
  const { set } = open({ first: { close: () => Promise.reject(new Error('stuck')) }, gpu: { close } })

  await expect(set.close()).rejects.toThrow('stuck')
  expect(closed).toEqual(['gpu'])
})

test('replicas and their events have the name of their engine', () => {
  const replica = { url: 'http://a/' } as ReplicaStatus
  let report: (event: ReplicaEvent) => void = () => {}
  const ended: string[] = []
  const gpu: Partial<Engine> = {
    replicas: () => [replica],
    onReplicaEvent: (listener) => {
      report = listener
      return () => void ended.push('gpu')
    },
  }
  const { set } = open({ first: { replicas: () => [replica] }, gpu })
  const events: ReplicaEvent[] = []
  const end = set.onReplicaEvent((event) => void events.push(event))

  report({ type: 'eject', url: 'http://a/', failure: 'lost' })
  end()

  expect(set.replicas()).toEqual([replica, { ...replica, engine: 'gpu' }])
  expect(events).toEqual([{ type: 'eject', url: 'http://a/', failure: 'lost', engine: 'gpu' }])
  expect(ended).toEqual(['gpu'])
})
