/** The files of the pages, which the package contains. */
import { readdir, readFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { type Llm, LlmError } from '@modelmount/core'
import { findPackageFile } from '@modelmount/core/adapter'
import type { HttpRequest, HttpResponse, Route } from '@modelmount/core/http'

interface PageFile {
  readonly type: string
  readonly content: Buffer
  /** The content, compressed by gzip when the package was built. */
  readonly compressed: Buffer | undefined
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Routes of the pages. The files are read at the first request, and kept in memory: they take less than 2 MB. */
export function pageRoutes(): readonly Route<Llm>[] {
  let files: Promise<ReadonlyMap<string, PageFile>> | undefined
  const respond = async (request: HttpRequest, name: string): Promise<HttpResponse | undefined> => {
    files ??= readPages().catch((cause: unknown) => {
      // The next request reads them again.
      files = undefined
      throw cause
    })
    const file = (await files).get(name)
    return file && toResponse(request, file, name)
  }
  return [
    {
      method: 'GET',
      path: '/',
      handle: async (request) =>
        // Relative URLs of the page need the slash.
        redirectToFolder(request) ?? ((await respond(request, 'index.html')) as HttpResponse),
    },
    ...['/assets/:file', '/:file'].map(
      (path): Route<Llm> => ({
        method: 'GET',
        path,
        handle: async (request) =>
          (await respond(request, request.path.slice(1))) ?? { status: 404, headers: {}, body: 'Not found.' },
      }),
    ),
  ]
}

async function readPages(): Promise<ReadonlyMap<string, PageFile>> {
  const manifest = findPackageFile('@modelmount/console/package.json')
  if (!manifest)
    throw new LlmError('internal', 'The package @modelmount/console is not installed.', { setup: true })
  const folder = join(dirname(manifest), 'dist/web')
  const names = await readdir(folder, { recursive: true })
  const readIfPresent = (name: string): Promise<Buffer | undefined> =>
    readFile(join(folder, name)).catch(() => undefined)
  const files = await Promise.all(
    names
      .filter((name) => extname(name) in types)
      .map(async (name) => {
        const type = types[extname(name)] as string
        const content = await readFile(join(folder, name))
        return [
          name.replaceAll('\\', '/'),
          { type, content, compressed: await readIfPresent(`${name}.gz`) },
        ] as const
      }),
  )
  return new Map(files)
}

function toResponse(
  request: HttpRequest,
  { type, content, compressed }: PageFile,
  name: string,
): HttpResponse {
  const isCompressed = compressed !== undefined && /\bgzip\b/.test(request.header('accept-encoding') ?? '')
  const body = isCompressed ? compressed : content
  return {
    status: 200,
    headers: {
      'content-type': type,
      'content-length': `${body.length}`,
      vary: 'accept-encoding',
      ...(isCompressed && { 'content-encoding': 'gzip' }),
      // The name of an asset contains a hash of its content.
      'cache-control': name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
    },
    body: framesOf(body),
  }
}

async function* framesOf(content: Buffer): AsyncGenerator<Uint8Array> {
  yield content
}

/** Returns a redirect from `/console` to `/console/`. The location is relative, because a proxy may change the path. */
function redirectToFolder({ originalPath = '/' }: HttpRequest): HttpResponse | undefined {
  if (originalPath.endsWith('/')) return undefined
  const name = originalPath.slice(originalPath.lastIndexOf('/') + 1)
  return { status: 308, headers: { location: `${name}/` }, body: null }
}
