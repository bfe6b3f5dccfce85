/** Pulls from registries that disconnect, stall, or send wrong or hostile responses. */
import { readdirSync, readFileSync, truncateSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../support/processes.ts'
import { type MadeBlob, noiseBlob, SmallRegistry } from '../support/registry.ts'
import {
  all,
  impatientPace,
  madeModel,
  pull,
  put,
  quickPace,
  type Store,
  storeFor,
} from '../support/transfers.ts'

let registry: SmallRegistry
/** A second registry on another port, as a stand-in for another machine. */
let elsewhere: SmallRegistry
beforeAll(async () => {
  registry = await SmallRegistry.start()
  elsewhere = await SmallRegistry.start()
})
afterEach(() => {
  registry.forget()
  elsewhere.forget()
})
afterAll(() => Promise.all([registry.close(), elsewhere.close()]))

const megabyte = 1024 ** 2
const tiny = () => `${registry.host}/library/tiny`
const inParts = { ...quickPace, partBytes: megabyte }

/** Publishes a new model, so that no test finds blobs of another test. */
let made = 0
function freshModel(sizeBytes = 3 * megabyte): MadeBlob {
  const weights = noiseBlob(`weights ${made++}`, sizeBytes)
  put(registry, 'library/tiny', madeModel(weights))
  return weights
}

const blobPath = ({ digest }: MadeBlob) => new RegExp(`^GET /v2/library/tiny/blobs/${digest}`)
const bytesOf = (blob: MadeBlob) => Buffer.concat([...blob.bytes(0, blob.sizeBytes)])
const rangeOf = (request: IncomingMessage): readonly [start: number, end: number] => {
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
  return [Number(first), Number(last) + 1]
}
function headFor(
  blob: MadeBlob,
  request: IncomingMessage,
  response: ServerResponse,
): readonly [number, number] {
  const [start, end] = rangeOf(request)
  response.writeHead(206, {
    'content-length': end - start,
    'content-range': `bytes ${start}-${end - 1}/${blob.sizeBytes}`,
  })
  return [start, end]
}
const filesOf = ({ root }: Store) => readdirSync(join(root, 'blobs')).sort()
function expectStored(store: Store, blob: MadeBlob): void {
  const stored = readFileSync(join(store.root, 'blobs', blob.digest.replace(':', '-')))
  expect(stored.equals(bytesOf(blob))).toBe(true)
  expect(filesOf(store).filter((file) => file.includes('partial'))).toEqual([])
}
const requestsFor = (blob: MadeBlob) =>
  registry.requests.filter(({ method, path }) => method === 'GET' && path.endsWith(blob.digest))
const fails = (store: Store) => expect(all(pull(store, tiny()))).rejects

describe('a pull from an unreliable registry', () => {
  test('resumes after a disconnect at the received offset', async () => {
    const weights = freshModel()
    let broken = 0
    registry.intercept(blobPath(weights), (request, response) => {
      if (broken++ === 3) return false
      const [start] = headFor(weights, request, response)
      for (const piece of weights.bytes(start, start + 500_000)) response.write(piece)
      // `end()` instead of `destroy()`, which would discard bytes that are not sent yet.
      response.write('', () => response.socket?.end())
      return true
    })
    const store = storeFor([registry.host])

    await all(pull(store, tiny()))

    expectStored(store, weights)
    const starts = requestsFor(weights).map(({ headers }) => Number(/\d+/.exec(headers.range ?? '')?.[0]))
    expect(starts).toHaveLength(4)
    // Each request resumes at most after the bytes that were sent, and at least after 60 % of them.
    for (const [times, start] of starts.entries()) {
      expect(start).toBeLessThanOrEqual(times * 500_000)
      expect(start).toBeGreaterThanOrEqual(times * 300_000)
    }
  })

  test('resumes after a stall at the received offset', async () => {
    const weights = freshModel()
    let stalls = 0
    registry.intercept(blobPath(weights), (request, response) => {
      if (stalls++ > 0) return false
      const [start] = headFor(weights, request, response)
      for (const piece of weights.bytes(start, start + 700_000)) response.write(piece)
      return true
    })
    const store = storeFor([registry.host], { policy: impatientPace })

    await all(pull(store, tiny()))

    expectStored(store, weights)
    expect(requestsFor(weights).map(({ headers }) => headers.range)).toEqual([
      'bytes=0-3145727',
      'bytes=700000-3145727',
    ])
  })

  test('completes when the registry is slow but never stalls', async () => {
    const weights = freshModel()
    registry.intercept(blobPath(weights), (request, response) => {
      const [start, end] = headFor(weights, request, response)
      const bytes = bytesOf(weights).subarray(start, end)
      let sent = 0
      const startedAt = performance.now()
      const timer = setInterval(() => {
        response.write(bytes.subarray(sent, ++sent))
        // The slow phase is longer than the stall limit and the interval of its checks.
        if (performance.now() - startedAt < 3 * impatientPace.stallMs) return
        clearInterval(timer)
        response.end(bytes.subarray(sent))
      }, 5)
      response.once('close', () => clearInterval(timer))
    })
    const store = storeFor([registry.host], { policy: impatientPace })

    await all(pull(store, tiny()))

    expectStored(store, weights)
    expect(requestsFor(weights)).toHaveLength(1)
  })

  test('retries after server errors', async () => {
    const weights = freshModel()
    let errors = 0
    registry.intercept(
      blobPath(weights),
      (_, response) => errors++ < 5 && response.writeHead(503).end('busy'),
    )
    const store = storeFor([registry.host])

    await all(pull(store, tiny()))

    expectStored(store, weights)
    expect(requestsFor(weights)).toHaveLength(6)
  })

  test('accepts a complete blob from a registry that ignores ranges', async () => {
    const weights = freshModel()
    registry.intercept(blobPath(weights), (_, response) => {
      response.writeHead(200, { 'content-length': weights.sizeBytes }).end(bytesOf(weights))
    })
    const store = storeFor([registry.host], { policy: inParts })

    await all(pull(store, tiny()))

    expectStored(store, weights)
  })

  test('downloads a blob again after a disconnect if the registry ignores ranges', async () => {
    const weights = freshModel()
    let times = 0
    registry.intercept(blobPath(weights), (_, response) => {
      response.writeHead(200, { 'content-length': weights.sizeBytes })
      if (times++ > 0) return response.end(bytesOf(weights))
      return response.write(bytesOf(weights).subarray(0, megabyte), () => response.destroy())
    })
    const store = storeFor([registry.host])

    await all(pull(store, tiny()))

    expectStored(store, weights)
    expect(times).toBe(2)
  })

  test('downloads a blob again that was truncated on disk', async () => {
    const weights = freshModel()
    const store = storeFor([registry.host])
    await all(pull(store, tiny()))
    truncateSync(join(store.root, 'blobs', weights.digest.replace(':', '-')), megabyte)

    await all(pull(store, tiny()))

    expectStored(store, weights)
  })

  test('follows a redirect to another allowed host', async () => {
    const weights = freshModel()
    elsewhere.addBlob(weights)
    registry.intercept(blobPath(weights), (_, response) =>
      response.writeHead(307, { location: `${elsewhere.url}/v2/cdn/blobs/${weights.digest}` }).end('moved'),
    )
    const store = storeFor([registry.host, elsewhere.host], { policy: inParts })

    await all(pull(store, tiny()))

    expectStored(store, weights)
    expect(elsewhere.requests).toHaveLength(3)
  })
})

describe('a pull fails', () => {
  test('after six server errors', async () => {
    const weights = freshModel()
    registry.intercept(blobPath(weights), (_, response) => response.writeHead(500).end('kaput'))
    const store = storeFor([registry.host])

    await fails(store).toMatchObject({ code: 'upstream', message: 'max retries exceeded: 500: kaput' })

    expect(requestsFor(weights)).toHaveLength(6)
  })

  test('at once when a blob is missing', async () => {
    const weights = freshModel()
    registry.intercept(blobPath(weights), (_, response) => response.writeHead(404).end('gone'))

    await fails(storeFor([registry.host])).toMatchObject({ code: 'upstream', message: '404: gone' })

    expect(requestsFor(weights)).toHaveLength(1)
  })

  test('after repeated stalls', async () => {
    const weights = freshModel()
    registry.intercept(blobPath(weights), (request, response) => {
      headFor(weights, request, response)
      response.write('x')
    })

    await fails(storeFor([registry.host], { policy: impatientPace })).toMatchObject({
      message: 'max retries exceeded: part stalled',
    })

    expect(requestsFor(weights)).toHaveLength(3)
  })

  test.each<
    readonly [string, (blob: MadeBlob, request: IncomingMessage, response: ServerResponse) => unknown, RegExp]
  >([
    [
      'another range than requested',
      (blob, _, response) =>
        response
          .writeHead(206, { 'content-range': `bytes 5-${blob.sizeBytes - 1}/${blob.sizeBytes}` })
          .end(bytesOf(blob).subarray(5)),
      /^max retries exceeded: expected bytes 0-3145727\/3145728, got bytes 5-3145727\/3145728$/,
    ],
    [
      'no range',
      (blob, _, response) => response.writeHead(206).end(bytesOf(blob)),
      /^max retries exceeded: expected .*, got undefined$/,
    ],
    [
      'a blob of another length',
      (blob, request, response) => {
        const [start, end] = rangeOf(request)
        response.writeHead(206, { 'content-range': `bytes ${start}-${end - 1}/${blob.sizeBytes + 1}` })
        response.end(bytesOf(blob))
      },
      /^max retries exceeded: expected .*, got /,
    ],
    [
      'more bytes than announced',
      (blob, request, response) => {
        const [start, end] = rangeOf(request)
        response.writeHead(206, { 'content-range': `bytes ${start}-${end - 1}/${blob.sizeBytes}` })
        response.end(
          Buffer.concat([bytesOf(blob).fill(0, blob.sizeBytes - 1), Buffer.alloc(10)]).subarray(start),
        )
      },
      /^(digest mismatch, file must be downloaded again: |max retries exceeded: received more bytes)/,
    ],
    [
      'headers without a body',
      (blob, request, response) => {
        headFor(blob, request, response)
        response.flushHeaders()
        response.destroy()
      },
      /^max retries exceeded: /,
    ],
  ])('when the registry sends %s', async (_, respond, message) => {
    const weights = freshModel()
    registry.intercept(blobPath(weights), (request, response) => {
      respond(weights, request, response)
    })
    const store = storeFor([registry.host])

    await fails(store).toMatchObject({ code: 'upstream', message: expect.stringMatching(message) })

    expect(filesOf(store)).not.toContain(weights.digest.replace(':', '-'))
  })

  test('when a blob has a wrong digest, and leaves no files', async () => {
    const weights = freshModel()
    const wrong = noiseBlob('wrong', weights.sizeBytes)
    registry.intercept(blobPath(weights), (request, response) => {
      const [start, end] = headFor(weights, request, response)
      response.end(bytesOf(wrong).subarray(start, end))
    })
    const store = storeFor([registry.host], { policy: inParts })

    await fails(store).toMatchObject({
      code: 'upstream',
      message: `digest mismatch, file must be downloaded again: want ${weights.digest}, got ${wrong.digest}`,
    })

    expect(filesOf(store)).toEqual([])
    expect(await store.manifests.list()).toEqual([])
    registry.forget()
    await all(pull(store, tiny()))
    expectStored(store, weights)
  })
})

describe('concurrent pulls', () => {
  test('of one model share the download', async () => {
    const weights = freshModel()
    const store = storeFor([registry.host], { policy: inParts })

    const [one, other] = await Promise.all([all(pull(store, tiny())), all(pull(store, tiny()))])

    expect(one.at(-1)?.status).toBe('success')
    expect(other.at(-1)?.status).toBe('success')
    expectStored(store, weights)
    expect(requestsFor(weights)).toHaveLength(3)
  })

  test('fail separately when only one manifest has a wrong blob size', async () => {
    const weights = freshModel()
    const wrong = madeModel({ ...weights, sizeBytes: weights.sizeBytes + 1 })
    registry.addManifest('library/wrong/latest', wrong.manifest)
    let release = (): void => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    registry.intercept(blobPath(weights), () => released.then(() => false))
    registry.intercept(/^GET \/v2\/library\/wrong\/blobs/, () => released.then(() => false))
    const store = storeFor([registry.host])
    const failed = expect(all(pull(store, `${registry.host}/library/wrong`))).rejects.toMatchObject({
      code: 'upstream',
    })
    await until(() => requestsFor(weights).length === 1, 5_000)
    const statuses: string[] = []
    const valid = (async () => {
      for await (const { status } of pull(store, tiny())) statuses.push(status)
    })()
    await until(() => statuses.some((status) => /^pulling [0-9a-f]{12}$/.test(status)), 5_000)

    release()

    await failed
    await valid
    expectStored(store, weights)
  })

  test('do not use space that another pull has reserved', async () => {
    const weights = freshModel()
    const other = noiseBlob('other weights', weights.sizeBytes)
    put(registry, 'library/other', madeModel(other))
    let release = (): void => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    registry.intercept(blobPath(weights), () => released.then(() => false))
    const store = storeFor([registry.host], { maxBytes: 1.5 * weights.sizeBytes })
    const first = all(pull(store, tiny()))
    await until(() => requestsFor(weights).length === 1, 5_000)

    await expect(all(pull(store, `${registry.host}/library/other`))).rejects.toMatchObject({
      code: 'too_large',
    })

    release()
    await first
    expectStored(store, weights)
    expect(requestsFor(other)).toEqual([])
  })

  test('continue when one of two pulls is aborted', async () => {
    const weights = freshModel()
    let release = (): void => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    registry.intercept(blobPath(weights), async () => {
      await released
      return false
    })
    const store = storeFor([registry.host])
    const controller = new AbortController()
    const aborted = all(pull(store, tiny(), controller.signal))
    await until(() => requestsFor(weights).length === 1, 5_000)
    const statuses: string[] = []
    const otherPull = (async () => {
      for await (const { status } of pull(store, tiny())) statuses.push(status)
    })()
    // The second pull waits for the same blob.
    await until(() => statuses.some((status) => /^pulling [0-9a-f]{12}$/.test(status)), 5_000)

    controller.abort()
    const events = await aborted
    release()

    expect(events.at(-1)?.status).not.toBe('success')
    await otherPull
    expect(statuses.at(-1)).toBe('success')
    expectStored(store, weights)
    expect(requestsFor(weights)).toHaveLength(1)
  })

  test('close the connection when the last pull is aborted, and keep the received bytes', async () => {
    const weights = freshModel()
    let closed = false
    registry.intercept(blobPath(weights), (request, response) => {
      response.once('close', () => {
        closed = true
      })
      const [start] = headFor(weights, request, response)
      for (const piece of weights.bytes(start, start + 2 * megabyte)) response.write(piece)
    })
    const store = storeFor([registry.host], { policy: quickPace })
    const controller = new AbortController()
    const completed: number[] = []
    const aborted = (async () => {
      for await (const event of pull(store, tiny(), controller.signal))
        completed.push(event.completedBytes ?? 0)
    })()
    await until(() => completed.at(-1) === 2 * megabyte, 5_000)

    controller.abort()
    await aborted

    await until(() => closed, 5_000)
    registry.forget()
    await all(pull(store, tiny()))
    expectStored(store, weights)
    expect(requestsFor(weights).map(({ headers }) => headers.range)).toEqual(['bytes=2097152-3145727'])
  })

  test('close the connection when the consumer stops iterating', async () => {
    const weights = freshModel()
    let closed = false
    registry.intercept(blobPath(weights), (request, response) => {
      response.once('close', () => {
        closed = true
      })
      headFor(weights, request, response)
      response.flushHeaders()
    })
    const store = storeFor([registry.host])

    for await (const { digest } of pull(store, tiny())) if (digest) break

    await until(() => closed, 5_000)
    registry.forget()
    await all(pull(store, tiny()))
    expectStored(store, weights)
  })

  test('end without an error when aborted before the manifest arrives', async () => {
    freshModel()
    let release = (): void => {}
    registry.intercept(/manifests/, () => new Promise<void>((resolve) => (release = resolve)))
    const controller = new AbortController()
    const aborted = all(pull(storeFor([registry.host]), tiny(), controller.signal))
    await until(() => registry.requests.length === 1, 5_000)

    controller.abort()

    expect(await aborted).toEqual([{ status: 'pulling manifest' }])
    release()
  })
})

describe('hostile responses of a registry', () => {
  test('a compressed manifest is rejected before its body is read', async () => {
    registry.intercept(/manifests/, (_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(50 * megabyte))),
    )

    await fails(storeFor([registry.host])).toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('encoded as gzip'),
    })
    expect(registry.requests[0]?.headers['accept-encoding']).toBe('identity')
  })

  test('a compressed blob is rejected before its body is read', async () => {
    const weights = freshModel()
    registry.intercept(blobPath(weights), (_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(bytesOf(weights))),
    )

    await fails(storeFor([registry.host])).toMatchObject({
      message: expect.stringContaining('encoded as gzip'),
    })
  })

  test('an endless manifest is read only up to the limit', async () => {
    let sent = 0
    registry.intercept(/manifests/, async (_, response) => {
      const piece = Buffer.alloc(64 * 1024, ' ')
      for (; sent < 100 * megabyte; sent += piece.length)
        if (!response.write(piece)) await new Promise<void>((resolve) => response.once('drain', resolve))
    })

    await fails(storeFor([registry.host])).toMatchObject({
      message: expect.stringContaining('sent more than'),
    })
    expect(sent).toBeLessThan(50 * megabyte)
  })

  test('a manifest that arrives too slowly times out', async () => {
    let timer: NodeJS.Timeout | undefined
    registry.intercept(/manifests/, (_, response) => {
      response.writeHead(200)
      timer = setInterval(() => response.write(' '), 5)
      response.once('close', () => clearInterval(timer))
    })

    await fails(storeFor([registry.host], { policy: impatientPace })).toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('did not answer within'),
    })
    clearInterval(timer)
  })

  test('headers of 200 kB are rejected', async () => {
    registry.intercept(/manifests/, (_, response) =>
      response.writeHead(200, { 'x-long': 'x'.repeat(200_000) }).end('{}'),
    )

    await fails(storeFor([registry.host], { policy: impatientPace })).toMatchObject({ code: 'upstream' })
  })

  test.each([
    ['larger than any disk', 2 ** 52, 'too_large'],
    ['larger than the largest safe integer', 1e300, 'upstream'],
    ['negative', -1, 'upstream'],
    ['a fraction', 0.5, 'upstream'],
    ['a string', '3', 'upstream'],
  ])('a blob whose size is %s is rejected and not requested', async (_, size, code) => {
    const weights = freshModel()
    const manifest = JSON.parse(madeModel(weights).manifest.toString())
    manifest.layers[0].size = size
    registry.addManifest('library/tiny/latest', Buffer.from(JSON.stringify(manifest)))
    const store = storeFor([registry.host])

    await fails(store).toMatchObject({ code })

    expect(requestsFor(weights)).toEqual([])
  })

  test.each(['sha256:../../../../etc/passwd', 'sha256:abc', '../x', `sha256:${'a'.repeat(63)}/`, 5, null])(
    'an invalid digest in a manifest is rejected before any blob request: %s',
    async (digest) => {
      const manifest = JSON.parse(madeModel(freshModel()).manifest.toString())
      manifest.layers[0].digest = digest
      registry.addManifest('library/tiny/latest', Buffer.from(JSON.stringify(manifest)))

      await fails(storeFor([registry.host])).toMatchObject({
        code: 'upstream',
        message: 'pull model manifest: the registry sent no manifest',
      })
      expect(registry.requests).toHaveLength(1)
    },
  )

  test('the error of the pull contains the error text of the registry', async () => {
    registry.intercept(/manifests/, (_, response) =>
      response.writeHead(500).end('{"errors":[{"code":"X","message":"kaput"}]}'),
    )

    await fails(storeFor([registry.host])).toMatchObject({
      message: 'pull model manifest: 500: {"errors":[{"code":"X","message":"kaput"}]}',
    })
  })
})
