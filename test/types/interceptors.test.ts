/** Types of interceptors, which `npm run types` checks. Nothing runs: the interceptors are not called. */
import type { InterceptedCall, Interceptor } from '@modelmount/core'
import type { EmbedRequest, GenerateRequest } from '@modelmount/core/engine'
import { expectTypeOf, test } from 'vitest'

test('the kind of a call tells the type of its request', () => {
  const interceptor: Interceptor = {
    before: (call) => {
      if (call.kind === 'embed') expectTypeOf(call.request).toEqualTypeOf<EmbedRequest>()
      if (call.kind === 'generate') expectTypeOf(call.request).toEqualTypeOf<GenerateRequest>()
      // @ts-expect-error Only some requests have an input.
      expectTypeOf(call.request.input).not.toBeAny()
      return undefined
    },
    mapEvents: (call) => {
      expectTypeOf(call).toEqualTypeOf<InterceptedCall<'generate'>>()
      return (event) => (event.type === 'text' ? { ...event, text: '' } : event)
    },
    after: (call, end) => {
      expectTypeOf(call).not.toHaveProperty('request')
      expectTypeOf(end.status).toEqualTypeOf<'ended' | 'failed' | 'aborted'>()
    },
  }

  expectTypeOf(interceptor.before).parameter(0).toEqualTypeOf<InterceptedCall>()
})

test('wrong interceptors do not compile', () => {
  const interceptors: readonly Interceptor[] = [
    // @ts-expect-error Requests have a model.
    { before: () => ({ input: { kind: 'text', prompt: [] } }) },
    // @ts-expect-error Events have a type.
    { mapEvents: () => () => 'text' },
    // @ts-expect-error Mappers are synchronous.
    { mapEvents: () => async (event) => event },
    // @ts-expect-error No such method.
    { befor: () => undefined },
  ]

  expectTypeOf(interceptors).toExtend<readonly Interceptor[]>()
})
