/**
 * Routes that report progress.
 * Shape: Ollama API reference, "Create a model", "Pull a model", "Push a model".
 */
import type * as z from 'zod'
import { invalidRequest } from '../../errors.ts'
import type { HttpResponse } from '../../http/message.ts'
import { json } from '../../http/respond.ts'
import { jsonLine, ndjson } from '../../http/streams.ts'
import type { CreateModelRequest } from '../../models/modelfile/create-request.ts'
import { parseModelName } from '../../models/ollama-store/name.ts'
import { withoutDigest } from '../../models/pinned-name.ts'
import type { Progress } from '../../models/registry/progress.ts'
import type { Handler, RouteCall } from '../dialect.ts'
import { omitUndefined } from '../fields.ts'
import { readBody } from './body.ts'
import { requireName } from './models.ts'
import { CreateRequest, TransferRequest } from './schema.ts'

/** `POST /api/create` */
export const create: Handler = async (call) => {
  const body = await readBody(call.request, CreateRequest, 'CreateRequest')
  const { signal } = call.request
  return respondWithProgress(call, body, call.llm.models.create(toCreateModel(body), { signal }))
}

/** `POST /api/pull` */
export const pull: Handler = async (call) => {
  const body = await readBody(call.request, TransferRequest, 'PullRequest')
  return respondWithProgress(
    call,
    body,
    call.llm.models.pull(requireValidName(body), toTransferOptions(call, body)),
  )
}

/** `POST /api/push` */
export const push: Handler = async (call) => {
  const body = await readBody(call.request, TransferRequest, 'PushRequest')
  requireName(body)
  return respondWithProgress(
    call,
    body,
    call.llm.models.push(requireValidName(body, withoutDigest), toTransferOptions(call, body)),
  )
}

type ModelNameFields = Pick<z.output<typeof TransferRequest>, 'model' | 'name'>

/** @param normalize removes what may follow a name */
function requireValidName(
  { model, name }: ModelNameFields,
  normalize = (name: string): string => name,
): string {
  const found = model || name || ''
  if (!parseModelName(normalize(found))) throw invalidRequest('invalid model name', { param: 'model' })
  return found
}

const toTransferOptions = (
  { request: { signal } }: RouteCall,
  { insecure = false }: z.output<typeof TransferRequest>,
) => ({ signal, insecure })

function toCreateModel(body: z.output<typeof CreateRequest>): CreateModelRequest {
  const { model: _model, name: _name, stream: _stream, quantization, license, ...spec } = body
  return {
    ...omitUndefined(spec),
    name: requireValidName(body),
    ...(license !== undefined && { license: [license].flat() }),
    ...(quantization && { quantize: quantization }),
  }
}

/**
 * Responds after the first `Progress`, so that an earlier failure has its own status code. Without `stream`,
 * responds after the last `Progress`.
 */
async function respondWithProgress(
  { onError }: RouteCall,
  { stream = true }: { readonly stream?: boolean | undefined },
  progress: AsyncIterable<Progress>,
): Promise<HttpResponse> {
  const steps = progress[Symbol.asyncIterator]()
  const first = await steps.next()
  let last: Progress = first.done ? { status: 'success' } : first.value
  if (!stream) {
    for (let step = first; !step.done; step = await steps.next()) last = step.value
    return json(toStep(last))
  }

  let pending: IteratorResult<Progress> | undefined = first
  const next = async (): Promise<IteratorResult<string>> => {
    const step = pending ?? (await steps.next())
    pending = undefined
    if (step.done) return { value: undefined, done: true }
    last = step.value
    return { value: jsonLine(toStep(last)), done: false }
  }
  const lines: AsyncIterableIterator<string> = {
    next,
    // Not a generator: `return` on a generator that has not started would not cancel the transfer.
    return: async () => {
      await steps.return?.()
      return { value: undefined, done: true }
    },
    [Symbol.asyncIterator]: () => lines,
  }
  // The heartbeat repeats the latest `Progress`.
  return ndjson(lines, { onError, heartbeat: () => jsonLine(toStep(last)) })
}

/** Omits empty fields. */
const toStep = ({ status, digest, totalBytes, completedBytes }: Progress): object => ({
  status,
  ...(digest && { digest }),
  ...(totalBytes && { total: totalBytes }),
  ...(completedBytes && { completed: completedBytes }),
})
