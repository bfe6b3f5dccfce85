import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { images, pngUrl } from '../../../../../test/support/images.ts'
import type { Engine } from '../../engine/engine.ts'
import type { GenerateRequest, ImagePart } from '../../engine/request.ts'
import { imagesOf } from '../../engine/request-input.ts'
import { limits } from '../../engine/request-limits.ts'
import type { LlmError } from '../../errors.ts'
import { GuardedFetch } from '../../models/registry/guarded-fetch.ts'
import { scriptedEngine } from '../../testing/scripted-engine.ts'
import { Call } from '../call.ts'
import { ImageDownloads } from '../images/image-downloads.ts'
import { createImageCheckStep, createImageDownloadStep } from './images.ts'

const png = Buffer.from(images.png, 'base64')
const sendPng: RequestListener = (_, response) =>
  void response.writeHead(200, { 'content-type': 'image/png' }).end(png)

let server: Server
let answer: RequestListener
let paths: string[]
let downloads: ImageDownloads
let host: string
const seeing = scriptedEngine('A cat.', { seesImages: true })

beforeEach(async () => {
  paths = []
  answer = sendPng
  server = createServer((request, response) => {
    paths.push(String(request.url))
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  downloads = withGuard({ privateHosts: [host] })
})
afterEach(async () => {
  await downloads.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

/** Only tests may download from a private address, and over HTTP. */
const withGuard = (
  options: ConstructorParameters<typeof GuardedFetch>[0],
  more: { readonly hosts?: readonly string[]; readonly timeoutMs?: number } = {},
): ImageDownloads => new ImageDownloads({ hosts: [host], guard: new GuardedFetch(options), ...more })

const image = (more: Partial<ImagePart>): ImagePart => ({
  ...{ type: 'image', mediaType: '', data: '', param: 'messages[0].content[0]', ...more },
})
const asking = (...content: readonly ImagePart[]): GenerateRequest => ({
  ...{ model: 'tiny', input: { kind: 'chat', messages: [{ role: 'user', content }] } },
})
const callOf = (requests: readonly GenerateRequest[], signal = new AbortController().signal): Call =>
  new Call({ kind: 'generate', signal, requests })
const imagesIn = (call: Call): readonly ImagePart[] =>
  call.requests.flatMap((request) => imagesOf((request as GenerateRequest).input))

const check = (call: Call, engine: Engine = seeing): void =>
  void createImageCheckStep(engine, downloads).before(call)
const errorOf = (work: () => unknown): LlmError => {
  try {
    work()
  } catch (cause) {
    return cause as LlmError
  }
  return expect.fail('Nothing was thrown.')
}
const download = async (call: Call): Promise<void> => createImageDownloadStep(downloads).before(call)

test('images of a seeing model are checked, and those of another one are replaced or rejected', () => {
  const call = callOf([asking(image({ url: pngUrl }))])
  check(call)

  expect(imagesIn(call)).toEqual([image({ mediaType: 'image/png', data: images.png })])
  expect(() => check(callOf([asking(image({ url: pngUrl }))]), scriptedEngine('Hi'))).toThrow(
    'An image is not supported by this model.',
  )
  const { seesImages: _, ...unaware } = scriptedEngine('Hi')
  const blind = callOf([asking(image({ url: 'https://a.example/b', replacement: 'Seen.' }))])
  check(blind, unaware)
  expect(blind.requests).toEqual([
    {
      ...{ model: 'tiny' },
      input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Seen.' }] }] },
    },
  ])
})

test('requests that share an input share its images', () => {
  const request = asking(image({ url: pngUrl }))
  const call = callOf([request, { ...request }])
  check(call)
  const [first, second] = call.requests as readonly GenerateRequest[]

  expect(first?.input).toBe(second?.input)
})

test('100 images are accepted, and one more is rejected', () => {
  const many = (count: number) => callOf([asking(...Array(count).fill(image({ data: images.png })))])
  const call = many(limits.images)
  check(call)

  expect(imagesIn(call)).toHaveLength(100)
  expect(() => check(many(101))).toThrow('Invalid image: expected at most 100 images, got 101.')
})

test('all images together have 50 MiB at most', () => {
  const large = Buffer.concat([png, Buffer.alloc(17 * 2 ** 20)]).toString('base64')
  const call = callOf([asking(...Array(3).fill(image({ data: large })))])

  expect(() => check(call)).toThrow(/^Invalid image: expected images of at most 52428800 bytes together/)
})

test.each([
  'https://169.254.169.254/latest/meta-data',
  'https://localhost/a.png',
  'https://other.example/a.png',
  'https://images.example.com:8443/a.png',
  'https://images.example.com.evil.example/a.png',
  'https://user@images.example.com/a.png',
  'https://user:secret@images.example.com/a.png',
  'http://images.example.com/a.png',
  'ftp://images.example.com/a.png',
  'file:///etc/passwd',
  '/etc/passwd',
  'images.example.com/a.png',
  'blob:https://images.example.com/a',
  'https://',
])('the image %s of a host that is not allowed is rejected before a request', (url) => {
  downloads = withGuard({ privateHosts: [] }, { hosts: ['images.example.com'] })
  const error = errorOf(() => check(callOf([asking(image({ url }))])))

  expect(error).toMatchObject({
    ...{ code: 'invalid_request', details: { param: 'messages[0].content[0]' } },
    message: expect.stringContaining("expected a data: URL in Base64, such as 'data:image/png;base64,…'"),
  })
  expect(error.message).not.toContain(url)
})

test('an image of an allowed host stays a URL until it is downloaded', async () => {
  downloads = withGuard({ privateHosts: [] }, { hosts: ['images.example.com', 'other.example:8443'] })
  const urls = ['https://images.example.com/a.png', 'HTTPS://Other.Example:8443/b?c#d']
  const call = callOf([asking(...urls.map((url) => image({ url })))])
  check(call)

  expect(imagesIn(call).map(({ url }) => url)).toEqual(urls)
})

test('an image is downloaded once, also for a fallback and for several answers', async () => {
  const request = asking(image({ url: `http://${host}/a.png` }))
  const calls = [callOf([request, request]), callOf([request])]
  for (const call of calls) await download(call)

  expect(paths).toEqual(['/a.png'])
  expect(calls.flatMap(imagesIn)).toEqual(Array(3).fill(image({ mediaType: 'image/png', data: images.png })))
})

test('a call without images by URL does not change', async () => {
  const requests = [asking(image({ mediaType: 'image/png', data: images.png }))]
  const call = callOf(requests)
  await download(call)

  expect(call.requests).toBe(requests)
  expect(paths).toEqual([])
})

test('a redirect within the host is followed, and one to another host is not', async () => {
  let other = 0
  const elsewhere = createServer((_, response) => {
    other++
    response.end('secret')
  })
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
  const { port } = elsewhere.address() as AddressInfo
  answer = (request, response) => {
    if (request.url === '/end.png') return sendPng(request, response)
    const location = request.url === '/near' ? '/end.png' : `http://127.0.0.1:${port}/secret`
    return response.writeHead(302, { location }).end()
  }
  downloads = withGuard({ privateHosts: [host, `127.0.0.1:${port}`] })

  const near = callOf([asking(image({ url: `http://${host}/near` }))])
  await download(near)
  expect(imagesIn(near)).toMatchObject([{ data: images.png }])
  await expect(download(callOf([asking(image({ url: `http://${host}/far` }))]))).rejects.toMatchObject({
    ...{ code: 'invalid_request', message: expect.stringContaining('could not be downloaded') },
  })
  expect(other).toBe(0)
  await new Promise((resolve) => elsewhere.close(resolve))
})

test('an allowed host whose name has a private address gets no request', async () => {
  downloads = withGuard({
    privateHosts: [],
    lookup: (_, __, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
  })
  const { port } = server.address() as AddressInfo
  const url = `https://images.example.com:${port}/a.png`

  await expect(download(callOf([asking(image({ url }))]))).rejects.toMatchObject({ code: 'invalid_request' })
  expect(paths).toEqual([])
})

test.each<[string, RequestListener]>([
  ['404', (_, response) => response.writeHead(404, { 'content-type': 'image/png' }).end(png)],
  ['a page', (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>secret</p>')],
  ['no content type', (_, response) => response.writeHead(200).end(png)],
  ['a text', (_, response) => response.writeHead(200, { 'content-type': 'image/png' }).end('secret text')],
  ['another format', (_, response) => response.writeHead(200, { 'content-type': 'image/gif' }).end(png)],
  [
    'a compressed body',
    (_, response) =>
      response.writeHead(200, { 'content-type': 'image/png', 'content-encoding': 'gzip' }).end(png),
  ],
  ['an image without an end', endless],
  ['a closed connection', (request) => request.socket.destroy()],
])('a host that answers with %s is a 400 that says nothing of the answer', async (_, listener) => {
  answer = listener
  const error = await download(callOf([asking(image({ url: `http://${host}/a.png` }))])).catch(
    (cause: LlmError) => cause,
  )

  expect(error).toMatchObject({
    ...{ code: 'invalid_request', details: { param: 'messages[0].content[0]', issue: 'value' } },
    message: 'Invalid image: it could not be downloaded. Expected an image of at most 20971520 bytes.',
  })
})

function endless(...[, response]: Parameters<RequestListener>): void {
  response.writeHead(200, { 'content-type': 'image/png' })
  const chunk = Buffer.alloc(2 ** 20, png)
  const send = (): void => {
    if (!response.destroyed) response.write(chunk, () => setImmediate(send))
  }
  send()
}

test('a host that does not answer in time is a 400', async () => {
  answer = () => {}
  downloads = withGuard({ privateHosts: [host] }, { timeoutMs: 20 })

  await expect(download(callOf([asking(image({ url: `http://${host}/a.png` }))]))).rejects.toMatchObject({
    code: 'invalid_request',
    message: /in time/,
  })
})

test('a client that leaves ends the download', async () => {
  const client = new AbortController()
  const closed = new Promise<void>((resolve) => {
    answer = (request) => void request.on('close', resolve)
  })
  const work = download(callOf([asking(image({ url: `http://${host}/a.png` }))], client.signal))
  while (paths.length === 0) await nextTurn()
  client.abort()

  await expect(work).rejects.toMatchObject({ name: 'AbortError' })
  await closed
})
