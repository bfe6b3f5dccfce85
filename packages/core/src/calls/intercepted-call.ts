/** Creates what interceptors see of a call, and checks the requests that they return. */
import type { Caller } from '../accounts/auth/caller.ts'
import { isRecord } from '../util/is-record.ts'
import type { Call, ModelRequest } from './call.ts'
import type {
  CallInfo,
  EndedCall,
  InterceptedCall,
  InterceptedKind,
  InterceptedRequest,
} from './interceptor.ts'

type Fields = Readonly<Record<string, unknown>>

/** Returns the first mistake in a request of each kind. The engine checks the other fields. */
const findMistake: Readonly<Record<InterceptedKind, (request: Fields) => string | undefined>> = {
  generate: ({ input }) => findInputMistake(input),
  count: ({ input }) => findInputMistake(input),
  render: ({ input }) => findInputMistake(input),
  embed: ({ inputs }) => expectList('inputs', inputs),
  rerank: ({ query, documents }) => expectText('query', query) ?? expectList('documents', documents),
  tokenize: ({ text }) => expectText('text', text),
  detokenize: ({ tokens }) => expectList('tokens', tokens),
}

export const isIntercepted = ({ kind }: Pick<Call, 'kind'>): boolean => Object.hasOwn(findMistake, kind)

/** Throws a `TypeError` if an interceptor has returned something else than a request of this kind. */
export function expectRequest(kind: Call['kind'], returned: unknown): ModelRequest {
  const mistake = isRecord(returned)
    ? (expectText('model', returned.model) ?? findMistake[kind as InterceptedKind](returned))
    : `expected a request or undefined, got ${describe(returned)}`
  if (mistake) throw new TypeError(`The returned request is invalid: ${mistake}`)
  return returned as unknown as ModelRequest
}

function findInputMistake(input: unknown): string | undefined {
  if (!isRecord(input)) return `input: expected an object with \`kind\`, got ${describe(input)}`
  const { kind, messages = [], prompt, prefix } = input
  if (kind === 'text') return expectList('input.prompt', prompt)
  if (kind === 'infill') return expectText('input.prefix', prefix)
  if (kind !== 'chat') return `input.kind: expected chat, text or infill, got ${describe(kind)}`
  if (!Array.isArray(messages)) return expectList('input.messages', messages)
  for (const [index, message] of messages.entries()) {
    const content: unknown = Object(message).content
    if (!Array.isArray(content))
      return `input.messages[${index}].content: expected a list such as [{ type: 'text', text: 'Hi' }], got ${describe(content)}`
  }
  return undefined
}

const expectList = (field: string, value: unknown): string | undefined =>
  Array.isArray(value) ? undefined : `${field}: expected a list, got ${describe(value)}`

const expectText = (field: string, value: unknown): string | undefined =>
  typeof value === 'string' ? undefined : `${field}: expected a text, got ${describe(value)}`

const describe = (value: unknown): string => (value === null ? 'null' : typeof value)

const toCallInfo = (call: Call, caller: Caller | undefined): CallInfo => ({
  id: call.id,
  model: call.modelName,
  caller,
  tenant: call.tenant,
  endUser: call.endUser,
  dialect: call.dialect,
  isBatchItem: call.batchItem !== undefined,
})

/**
 * Freezes the call and its request, because a request must be returned to be authorised again.
 *
 * @param caller a frozen copy of the caller
 */
export function toInterceptedCall(call: Call, caller: Caller | undefined, index: number): InterceptedCall {
  const request = { ...call.requests[index] } as ModelRequest
  const load = request.load && { load: Object.freeze({ ...request.load }) }
  return Object.freeze({
    ...toCallInfo(call, caller),
    kind: call.kind,
    request: Object.freeze({ ...request, ...load }),
    index,
    signal: call.signal,
  }) as InterceptedCall
}

/** @param caller a frozen copy of the caller */
export const toEndedCall = (call: Call, caller: Caller | undefined): EndedCall =>
  Object.freeze({
    ...toCallInfo(call, caller),
    kind: call.kind as InterceptedKind,
    requests: call.requests as readonly InterceptedRequest[],
  })
