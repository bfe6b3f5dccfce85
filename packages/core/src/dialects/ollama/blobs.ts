/**
 * Uploaded files for new models, addressed by digest.
 * Shape: Ollama API reference, "Check if a Blob Exists", "Push a Blob".
 */
import { LlmError } from '../../errors.ts'
import { empty } from '../../http/respond.ts'
import { toDigest } from '../../models/ollama-store/digest.ts'
import type { Handler } from '../dialect.ts'

/** `HEAD /api/blobs/:digest` */
export const findBlob: Handler = async ({ request, llm }) => {
  const digest = toDigest(request.params.digest ?? '')
  if (await llm.models.blobs.find(digest)) return empty()
  throw new LlmError('not_found', `blob ${digest} not found`)
}

/** `POST /api/blobs/:digest`. If the blob exists, the body is not read. */
export const addBlob: Handler = async ({ request, llm }) => {
  const { blobs } = llm.models
  const digest = toDigest(request.params.digest ?? '')
  if (await blobs.find(digest)) return empty()
  await blobs.write(digest, request.bytes(), request.signal)
  return empty(201)
}
