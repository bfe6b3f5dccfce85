import { expect, test } from 'vitest'
import type { Caller, Scope } from '../../accounts/auth/caller.ts'
import type { LoadOptions } from '../../engine/request.ts'
import { Call, type ModelRequest } from '../call.ts'
import type { CallKind } from '../kind.ts'
import { createAuthoriseStep } from './authorise.ts'

const defaultScopes: readonly Scope[] = ['inference']
const step = createAuthoriseStep({
  hasLedger: false,
  scopesOf: ({ scopes = defaultScopes }: Caller) => scopes,
})
const ask = (load?: LoadOptions): ModelRequest => ({ model: 'tiny', ...(load && { load }) })

function authorise(
  caller: Caller | undefined,
  requests: readonly ModelRequest[],
  kind: CallKind = 'generate',
): Call {
  const { signal } = new AbortController()
  const call = new Call({ kind, requests, signal, ...(caller && { caller }) })
  void step.before(call)
  return call
}

test.each<[who: string, caller: Caller | undefined]>([
  ['the host app itself', undefined],
  ['a caller with the scope models', { id: 'ann', scopes: ['inference', 'models'] }],
])('%s chooses how a model is loaded, and unloads it', (_who, caller) => {
  const requests = [ask({ contextSize: 512, keepAlive: 0 })]

  const call = authorise(caller, requests)

  expect(call.requests).toEqual(requests)
  expect(call.toEngineCall()).not.toHaveProperty('requestedContextSize')
  expect(() => authorise(caller, [ask()], 'unload')).not.toThrow()
})

test.each<[who: string, caller: Caller]>([
  ['without scopes of its own', { id: 'ann' }],
  ['with other scopes', { id: 'ann', scopes: ['inference', 'admin'] }],
])('the engine gets no load option of a caller %s, and is told the context size', (_who, caller) => {
  for (const kind of ['generate', 'embed', 'count', 'load'] as const) {
    const call = authorise(
      caller,
      [ask({ contextSize: 512, defaultContextSize: 16, keepAlive: 'forever' })],
      kind,
    )

    expect(call.requests).toEqual([ask({})])
    expect(call.toEngineCall()).toMatchObject({ requestedContextSize: 512 })
  }
})

test('the defaults of the option `scopes` apply to a caller without scopes', () => {
  const { before } = createAuthoriseStep({ hasLedger: false, scopesOf: () => ['inference', 'models'] })
  const requests = [ask({ contextSize: 512 })]
  const { signal } = new AbortController()
  const call = new Call({ kind: 'generate', caller: { id: 'ann' }, requests, signal })

  void before(call)

  expect(call.requests).toEqual(requests)
})

test('of several requests, the engine is told the largest context size', () => {
  const call = authorise({ id: 'ann' }, [ask({ contextSize: 512 }), ask(), ask({ contextSize: 2_048 })])

  expect(call.requests).toEqual([ask({}), ask(), ask({})])
  expect(call.toEngineCall()).toMatchObject({ requestedContextSize: 2_048 })
})

test('a call without a context size tells the engine none', () => {
  const call = authorise({ id: 'ann' }, [ask({ keepAlive: 0 })])

  expect(call.requests).toEqual([ask({})])
  expect(call.toEngineCall()).not.toHaveProperty('requestedContextSize')
})

test('to unload a model, a caller needs the scope models', () => {
  expect(() => authorise({ id: 'ann' }, [ask()], 'unload')).toThrow(
    expect.objectContaining({
      code: 'permission',
      message: "To unload a model, a caller needs the scope 'models'.",
    }),
  )
})
