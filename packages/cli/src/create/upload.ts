/** Uploads files as blobs, except blobs that the server already has. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { parseDigest } from '@modelmount/core/models'
import type { ProgressLine } from '../format/progress.ts'
import { type Server, ServerError } from '../server.ts'

const progressIntervalMs = 100

type ByName = Readonly<Record<string, string>>

/**
 * Uploads files, and returns a map from file names to digests. A value in `files` that is already a digest
 * names a blob on the server, and is kept.
 */
export async function* upload(server: Server, files: ByName): AsyncGenerator<ProgressLine, ByName> {
  const digests: Record<string, string> = {}
  for (const [name, path] of Object.entries(files))
    digests[name] = parseDigest(path) ?? (yield* uploadOne(server, path))
  return digests
}

async function* uploadOne(server: Server, file: string): AsyncGenerator<ProgressLine, string> {
  const digest = await digestOf(file)
  const { size: total } = await stat(file)
  const progress = { status: `copying file ${digest}`, digest, total }
  if (!(await hasBlob(server, digest))) {
    let completed = 0
    const bytes = createReadStream(file).on('data', (chunk) => {
      completed += chunk.length
    })
    const sent = server
      .send('POST', `/api/blobs/${digest}`, { body: Readable.toWeb(bytes) as ReadableStream<Uint8Array> })
      .then(() => true)
    while (!(await Promise.race([sent, delay(progressIntervalMs, false, { ref: false })])))
      yield { ...progress, completed }
  }
  yield { ...progress, completed: total }
  return digest
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk as Uint8Array)
  return `sha256:${hash.digest('hex')}`
}

async function hasBlob(server: Server, digest: string): Promise<boolean> {
  try {
    await server.send('HEAD', `/api/blobs/${digest}`)
    return true
  } catch (error) {
    if (error instanceof ServerError && error.status === 404) return false
    throw error
  }
}
