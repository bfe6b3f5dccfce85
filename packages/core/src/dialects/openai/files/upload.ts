/** Reads an uploaded file from a form, piece by piece. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { invalidRequest, LlmError } from '../../../errors.ts'
import type { HttpRequest } from '../../../http/message.ts'

export interface FormFile {
  readonly filename: string
  readonly content: AsyncIterable<Uint8Array>
  /** Resolves with the other fields when the whole form has been read. */
  readonly whenComplete: Promise<ReadonlyMap<string, string>>
}

/**
 * Calls `store` with the part `file`. Rejects with its error, or with an `LlmError` `invalid_request` for an invalid or
 * incomplete form.
 */
export async function readUpload<Stored>(
  request: Pick<HttpRequest, 'header' | 'bytes'>,
  store: (upload: FormFile) => Promise<Stored>,
): Promise<Stored> {
  const form = await openForm(request.header('content-type'))
  const fields = new Map<string, string>()
  const failed = new AbortController()
  let stored: Promise<Stored> | undefined
  const { promise: whenComplete, resolve, reject } = withResolvers<ReadonlyMap<string, string>>()
  whenComplete.catch(() => {}) // `store` may have failed before it waits.
  form.on('field', (name, value) => fields.set(name, value))
  form.on('file', (name, content, { filename = 'file.jsonl' }) => {
    // Without a listener, the error of an incomplete form would end the app if it comes before `store` reads the content.
    content.on('error', () => {})
    if (name !== 'file' || stored) return void content.resume()
    stored = store({ filename, content: withFormErrors(content), whenComplete })
    // The rest of the form is not read then.
    stored.catch(() => failed.abort())
  })
  try {
    await pipeline(Readable.from(request.bytes(), { objectMode: false }), form, { signal: failed.signal })
    resolve(fields)
  } catch (cause) {
    const error = toFormError(cause)
    reject(error)
    // If storing has failed, that is the reason.
    await stored
    throw error
  }
  if (!stored) throw fileMissing()
  return stored
}

async function openForm(contentType: string | undefined) {
  // Loaded with the first upload, so that an app without uploads starts faster.
  const { default: busboy } = await import('busboy')
  try {
    return busboy({ headers: { 'content-type': contentType }, limits, defParamCharset: 'utf8' })
  } catch (cause) {
    throw new LlmError(
      'invalid_request',
      "Expected a form: the content-type has to be 'multipart/form-data' with a boundary.",
      {},
      { cause },
    )
  }
}

async function* withFormErrors(content: Readable): AsyncGenerator<Uint8Array> {
  try {
    yield* content
  } catch (cause) {
    throw toFormError(cause)
  }
}

/** The file itself is limited where it is stored. */
const limits = { files: 1, fields: 16, fieldNameSize: 100, fieldSize: 1_024, parts: 20 }

/** `Promise.withResolvers` of Node 22. */
function withResolvers<Value>() {
  let resolve: (value: Value) => void = () => {}
  let reject: (reason: unknown) => void = () => {}
  const promise = new Promise<Value>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}

const fileMissing = (): LlmError =>
  invalidRequest("Missing required parameter: 'file'.", { param: 'file', issue: 'missing' })

/** The body itself fails with an `LlmError`, such as of a client that has disconnected. */
const toFormError = (cause: unknown): LlmError =>
  LlmError.is(cause)
    ? cause
    : new LlmError('invalid_request', 'The form is incomplete or invalid.', {}, { cause })
