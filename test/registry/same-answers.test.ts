/** The tests' registry responds like Docker's to the requests of pulls and pushes. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.mjs'
import { blobOf, noiseBlob, SmallRegistry } from '../support/registry.ts'
import { madeModel, publish } from '../support/transfers.ts'

const weights = noiseBlob('the same', 1_000_000)
const bytes = Buffer.concat([...weights.bytes(0, weights.sizeBytes)])
const model = madeModel(weights)
const missing = blobOf('nobody has this').digest
const manifestType = 'application/vnd.docker.distribution.manifest.v2+json'

interface Asked {
  readonly url: string
  close(): Promise<void>
}
let small: Asked
let docker: Asked
const isThere = hasDockerRegistry || process.env.CI !== undefined

beforeAll(async () => {
  if (!isThere) return
  ;[small, docker] = await Promise.all([SmallRegistry.start(), startDockerRegistry()])
  for (const { url } of [small, docker]) await publish(url, 'library/tiny', model)
})
afterAll(() => Promise.all([small?.close(), docker?.close()]))

const told = [
  ...['content-type', 'content-length', 'content-range', 'accept-ranges', 'docker-content-digest', 'range'],
  ...['content-encoding', 'www-authenticate'],
]

/** Reduces an error to its code, and an upload location to its presence. */
async function shapeOf(response: Response): Promise<unknown> {
  const { status, headers } = response
  const body = Buffer.from(await response.arrayBuffer())
  const isError = status >= 400 && body.length > 0
  const place = headers.get('location')
  return {
    status,
    // An empty body may have a content length or not.
    headers: told
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

const asked: Record<string, (url: string) => Promise<Response>> = {
  'a manifest': (url) => at(url, 'manifests/latest', { headers: { accept: manifestType } }),
  'a manifest that is not there': (url) => at(url, 'manifests/nope'),
  'a model that is not there': (url) => fetch(`${url}/v2/library/nope/manifests/latest`),
  'whether a blob is there': (url) => at(url, `blobs/${weights.digest}`, { method: 'HEAD' }),
  'whether a blob is there that is not': (url) => at(url, `blobs/${missing}`, { method: 'HEAD' }),
  'a blob': (url) => at(url, `blobs/${weights.digest}`),
  'a blob that is not there': (url) => at(url, `blobs/${missing}`),
  'the beginning of a blob': (url) =>
    at(url, `blobs/${weights.digest}`, { headers: { range: 'bytes=0-999' } }),
  'a part of a blob': (url) =>
    at(url, `blobs/${weights.digest}`, { headers: { range: 'bytes=500000-700001' } }),
  'the end of a blob': (url) =>
    at(url, `blobs/${weights.digest}`, { headers: { range: 'bytes=999999-999999' } }),
  'an upload': (url) => at(url, 'blobs/uploads/', { method: 'POST' }),
  'an upload of what another model has': (url) =>
    fetch(`${url}/v2/library/other/blobs/uploads/?mount=${weights.digest}&from=library/tiny`, {
      method: 'POST',
    }),
  'an upload of what no other model has': (url) =>
    fetch(`${url}/v2/library/other/blobs/uploads/?mount=${missing}&from=library/tiny`, { method: 'POST' }),
  'a first part': async (url) => sent(await begun(url), 0, 400_000),
  'a second part': async (url) => sent(nextOf(await sent(await begun(url), 0, 400_000)), 400_000, 1_000_000),
  'how far an upload has come': async (url) => fetch(nextOf(await sent(await begun(url), 0, 400_000))),
  'the end of an upload': async (url) =>
    finished(nextOf(await sent(await begun(url), 0, 1_000_000)), weights.digest),
  'the end of an upload of other bytes': async (url) => finished(await begun(url), missing, bytes),
  'the same manifest once more': (url) =>
    at(url, 'manifests/latest', {
      method: 'PUT',
      body: model.manifest,
      headers: { 'content-type': manifestType },
    }),
  'a manifest of blobs that are not there': (url) =>
    at(url, 'manifests/bad', {
      method: 'PUT',
      body: model.manifest.toString().replace(weights.digest, missing),
      headers: { 'content-type': manifestType },
    }),
}

test.runIf(isThere).each(Object.entries(asked))('to %s', async (_, ask) => {
  expect(await shapeOf(await ask(small.url))).toEqual(await shapeOf(await ask(docker.url)))
})
