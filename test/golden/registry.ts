/** Replaces the registry of the recording. Serves the models of a store, and accepts no pushes. */
import { createReadStream, existsSync, statSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { type Listening, listen } from '../support/listen.ts'

/** The address of the registry in the recording. */
export const recordedRegistry = '127.0.0.1:5099'

/** A closed port instead of the default registry, which the recorded server could not reach. */
export const deadRegistry = '127.0.0.1:1'

/** @param folder a store in Ollama's layout */
export const registryOf = (folder: string): Promise<Listening> => listen(answering(folder))

const answering =
  (folder: string): RequestListener =>
  ({ method, url = '' }, response) => {
    const [, model = '', kind, reference = ''] =
      /^\/v2\/library\/(\w+)\/(manifests|blobs)\/([\w:]+)$/.exec(url) ?? []
    if (model === 'boom') return response.writeHead(500).end('{"errors":[{"code":"X","message":"kaput"}]}')
    if (model === 'auth') {
      const challenge = 'Bearer realm="https://other.example/token",service="x",scope="repository:auth:pull"'
      return response.writeHead(401, { 'www-authenticate': challenge }).end()
    }
    const path =
      kind === 'manifests'
        ? join(folder, 'manifests', 'registry.ollama.ai', 'library', model, reference)
        : join(folder, 'blobs', reference.replace(':', '-'))
    if (kind === undefined || !existsSync(path)) return response.writeHead(404).end()
    if (method !== 'GET' && method !== 'HEAD') return response.writeHead(501).end()
    response.setHeader('content-length', statSync(path).size)
    if (method === 'HEAD') return response.end()
    return createReadStream(path).pipe(response)
  }
