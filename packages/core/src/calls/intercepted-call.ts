/** Creates what interceptors see of a call, and checks the requests that they return. */
import type { Caller } from '../accounts/auth/caller.ts'
import { LlmError } from '../errors.ts'
import type { Call, ModelRequest } from './call.ts'
import { expected } from './check-fields.ts'
import { checkGenerateRequest, checkRequest } from './check-requests.ts'
import type {
  CallInfo,
  EndedCall,
  InterceptedCall,
  InterceptedKind,
  InterceptedRequest,
} from './interceptor.ts'
import { detokenizeFields, embedFields, rerankFields, tokenizeFields } from './request-fields.ts'

const checkGenerate = (request: unknown): void => checkGenerateRequest(request, 'before')
const checkFieldsOf =
  (fields: object) =>
  (request: unknown): void =>
    checkRequest(request, fields, 'before')

/** Throw an `LlmError` for an unknown field. The engine checks the values. */
const checks: Readonly<Record<InterceptedKind, (request: unknown) => void>> = {
  generate: checkGenerate,
  count: checkGenerate,
  render: checkGenerate,
  embed: checkFieldsOf(embedFields),
  rerank: checkFieldsOf(rerankFields),
  tokenize: checkFieldsOf(tokenizeFields),
  detokenize: checkFieldsOf(detokenizeFields),
}

export const isIntercepted = ({ kind }: Pick<Call, 'kind'>): boolean => Object.hasOwn(checks, kind)

/**
 * Throws a `TypeError` if an interceptor has returned something else than a request of this kind. The client must
 * not get it as an error of its own.
 */
export function expectRequest(kind: Call['kind'], returned: unknown): ModelRequest {
  try {
    checks[kind as InterceptedKind](returned)
    const request = returned as InterceptedRequest
    if (typeof request.model !== 'string') throw expected('model', 'a string', request.model)
    return request
  } catch (cause) {
    throw new TypeError(`The returned request is invalid. ${LlmError.from(cause).message}`, { cause })
  }
}

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
