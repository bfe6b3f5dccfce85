/** `SmallRegistry` must respond like Docker's registry to the requests of pulls and pushes. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.mjs'
import { blobOf, noiseBlob, SmallRegistry } from '../support/registry.ts'
import { madeModel, publish } from '../support/transfers.ts'

const weights = noiseBlob('the same', 1_000_000)
const bytes = Buffer.concat([...weights.bytes(0, weights.sizeBytes)])
const model = madeModel(weights)
const missing = blobOf('nobody has this').digest
const manifestType = 'application/vnd.docker.distribution.manifest.v2+json'

interface Registry {
  readonly url: string
  close(): Promise<void>
}
let small: Registry
let docker: Registry
const isThere = hasDockerRegistry || process.env.CI !== undefined

beforeAll(async () => {
  if (!isThere) return
  ;[small, docker] = await Promise.all([SmallRegistry.start(), startDockerRegistry()])
  for (const { url } of [small, docker]) await publish(url, 'library/tiny', model)
})
afterAll(() => Promise.all([small?.close(), docker?.close()]))

const comparedHeaders = [
  ...['content-type', 'content-length', 'content-range', 'accept-ranges', 'docker-content-digest', 'range'],
  ...['content-encoding', 'www-authenticate'],
]

/**
 * The compared parts of a response. An error is reduced to its code, and the id in an upload location to
 * `id`.
 */
async function shapeOf(response: Response): Promise<unknown> {
  const { status, headers } = response
  const body = Buffer.from(await response.arrayBuffer())
  const isError = status >= 400 && body.length > 0
  const place = headers.get('location')
  return {
    status,
    // The registries may differ in the content length of empty bodies.
    headers: comparedHeaders
      .filter((name) => name !== 'content-length' || status === 200 || status === 206)
      .map((name) => [name, headers.get(name)]),
    place: place && new URL(place).pathname.replace(/[0-9a-f-]{36}/, 'id'),
    body: isError ? JSON.parse(body.toString()).errors[0].code : body.toString('base64'),
  }
}

const at = (url: string, path: string, init?: RequestInit) => fetch(`${url}/v2/library/tiny/${path}`, init)
const begun = async (url: string) =>
  (await at(url, 'blobs/uploads/', { method: 'POST' })).headers.get('location') ?? ''
const finished = (place: string, digest: string, body?: Buffer) => {
  const whole = new URL(place)
  whole.searchParams.set('digest', digest)
  return fetch(whole, { method: 'PUT', ...(body && { body }) })
}
const sent = (place: string, from: number, to: number) =>
  fetch(place, {
    method: 'PATCH',
    body: bytes.subarray(from, to),
    headers: { 'content-range': `${from}-${to - 1}`, 'content-type': 'application/octet-stream' },
  })
const nextOf = (response: Response) => response.headers.get('location') ?? ''

const requests: Record<string, (url: string) => Promise<Response>> = {
  'a manifest': (url) => at(url, 'manifests/latest', { headers: { accept: manifestType } }),
  'a missing manifest': (url) => at(url, 'manifests/nope'),
  'the manifest of a missing model': (url) => fetch(`${url}/v2/library/nope/manifests/latest`),
  'the headers of a blob': (url) => at(url, `blobs/${weights.digest}`, { method: 'HEAD' }),
  'the headers of a missing blob': (url) => at(url, `blobs/${missing}`, { method: 'HEAD' }),
  'a blob': (url) => at(url, `blobs/${weights.digest}`),
  'a missing blob': (url) => at(url, `blobs/${missing}`),
  'the first bytes of a blob': (url) =>
    at(url, `blobs/${weights.digest}`, { headers: { range: 'bytes=0-999' } }),
  'a range in a blob': (url) =>
    at(url, `blobs/${weights.digest}`, { headers: { range: 'bytes=500000-700001' } }),
  'the last byte of a blob': (url) =>
    at(url, `blobs/${weights.digest}`, { headers: { range: 'bytes=999999-999999' } }),
  'the start of an upload': (url) => at(url, 'blobs/uploads/', { method: 'POST' }),
  'a mount of a blob from another model': (url) =>
    fetch(`${url}/v2/library/other/blobs/uploads/?mount=${weights.digest}&from=library/tiny`, {
      method: 'POST',
    }),
  'a mount of a missing blob': (url) =>
    fetch(`${url}/v2/library/other/blobs/uploads/?mount=${missing}&from=library/tiny`, { method: 'POST' }),
  'the first chunk of an upload': async (url) => sent(await begun(url), 0, 400_000),
  'the second chunk of an upload': async (url) =>
    sent(nextOf(await sent(await begun(url), 0, 400_000)), 400_000, 1_000_000),
  'the offset of an upload': async (url) => fetch(nextOf(await sent(await begun(url), 0, 400_000))),
  'the end of an upload': async (url) =>
    finished(nextOf(await sent(await begun(url), 0, 1_000_000)), weights.digest),
  'the end of an upload with a wrong digest': async (url) => finished(await begun(url), missing, bytes),
  'an upload of an existing manifest': (url) =>
    at(url, 'manifests/latest', {
      method: 'PUT',
      body: model.manifest,
      headers: { 'content-type': manifestType },
    }),
  'an upload of a manifest with missing blobs': (url) =>
    at(url, 'manifests/bad', {
      method: 'PUT',
      body: model.manifest.toString().replace(weights.digest, missing),
      headers: { 'content-type': manifestType },
    }),
}

test.runIf(isThere).each(Object.entries(requests))(
  'both registries respond the same to: %s',
  async (_, send) => {
    expect(await shapeOf(await send(small.url))).toEqual(await shapeOf(await send(docker.url)))
  },
)
