/** Pulls ignored `HTTPS_PROXY`, so no model could be pulled in a network that reaches others by a proxy only. */
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { createServer } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { ProxySettings } from '../../../packages/core/src/models/registry/proxy.ts'
import { type ConnectProxy, connectProxy, type ProxyBehaviour } from '../../support/connect-proxy.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import { noiseBlob, SmallRegistry } from '../../support/registry.ts'
import { all, impatientPace, madeModel, pull, put, storeFor } from '../../support/transfers.ts'

/** Only the proxies know this name. */
const host = 'registry.invalid'
const weights = noiseBlob('proxied', 200_000)
const success = { status: 'success' }

let registry: SmallRegistry
beforeAll(async () => {
  registry = await SmallRegistry.start()
  put(registry, 'library/tiny', madeModel(weights))
})
afterAll(() => registry.close())

async function startProxy(behaviour?: ProxyBehaviour, ports?: Record<string, number>): Promise<ConnectProxy> {
  const proxy = await connectProxy(
    ports ?? { [`${host}:5000`]: Number(new URL(registry.url).port) },
    behaviour,
  )
  onTestFinished(() => proxy.close())
  return proxy
}

/** Pulls over `http`, from a private registry. */
const pullBy = (proxy: ProxySettings, policy = impatientPace) =>
  all(pull(storeFor([`${host}:5000`], { proxy, policy }), `${host}:5000/library/tiny`))

test('a pull over http sends its requests to the proxy, which resolves the name', async () => {
  const proxy = await startProxy()

  expect((await pullBy({ http: proxy.url })).at(-1)).toEqual(success)

  expect(proxy.requests).toContain(`GET http://${host}:5000/v2/library/tiny/manifests/latest`)
  expect(proxy.credentials.every((one) => one === undefined)).toBe(true)
})

test('the credentials in the URL of the proxy are sent to the proxy, and not to the registry', async () => {
  registry.forget()
  const proxy = await startProxy()
  const url = proxy.url.replace('http://', 'http://ann:p%40ss@')

  expect((await pullBy({ http: url })).at(-1)).toEqual(success)

  expect(new Set(proxy.credentials)).toEqual(new Set([`Basic ${Buffer.from('ann:p@ss').toString('base64')}`]))
})

test('a host of `NO_PROXY` is requested directly, and its name is resolved here', async () => {
  const proxy = await startProxy()

  await expect(pullBy({ http: proxy.url, none: '.invalid' })).rejects.toThrow(/ENOTFOUND|EAI_AGAIN/)

  expect(proxy.requests).toEqual([])
})

test.each([403, 407] as const)('a proxy that refuses with %i ends the pull with an error', async (status) => {
  const proxy = await startProxy(status)

  await expect(pullBy({ http: proxy.url })).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringContaining(`${status}`),
  })
})

test('a proxy that hangs ends the pull after the time limit of a request, and the error names it', async () => {
  const proxy = await startProxy('hang')
  const secretive = proxy.url.replace('http://', 'http://ann:secret-of-the-proxy@')

  const failed = pullBy({ http: secretive })

  await expect(failed).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringContaining(`did not answer within 0.7 s, through the proxy ${proxy.url}`),
  })
  await expect(failed).rejects.not.toThrow('secret-of-the-proxy')
})

test('a proxy that does not listen is named in the error', async () => {
  const proxy = await startProxy()
  await proxy.close()

  await expect(pullBy({ http: proxy.url })).rejects.toMatchObject({
    code: 'upstream',
    message: expect.stringContaining(`ECONNREFUSED 127.0.0.1:${new URL(proxy.url).port}, through the proxy`),
  })
})

test.each([
  ...['https://169.254.169.254/latest', 'https://localhost/', 'https://[::1]/', 'http://example.com/'],
  ...['https://metadata.google.internal/', 'https://printer.local/', 'https://router/', 'https://router./'],
])('a redirect to %s is blocked, although a proxy would follow it', async (location) => {
  const proxy = await startProxy()
  registry.intercept(/manifests/, (_request, response) => response.writeHead(302, { location }).end())
  onTestFinished(() => registry.forget())

  await expect(pullBy({ http: proxy.url, https: proxy.url })).rejects.toMatchObject({ code: 'permission' })

  expect(proxy.requests).toHaveLength(1)
})

const hasOpenssl = spawnSync('openssl', ['version']).status === 0

describe.runIf(hasOpenssl)('an app with `HTTPS_PROXY` in its environment', () => {
  const folder = emptyFolder()
  const [keyFile, certificateFile] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const app = fileURLToPath(new URL('pull-by-proxy.mjs', import.meta.url))
  let tls: ReturnType<typeof createServer>
  let ports: Record<string, number>

  beforeAll(async () => {
    const files = ['-keyout', keyFile, '-out', certificateFile]
    const names = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`]
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    execFileSync('openssl', ['req', '-x509', ...curve, ...files, ...names], { stdio: 'ignore' })
    const pems = { key: readFileSync(keyFile), cert: readFileSync(certificateFile) }
    tls = createServer(pems, (socket) => {
      const upstream = connect(Number(new URL(registry.url).port), '127.0.0.1')
      pipeline(socket, upstream, socket, () => {})
    })
    await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve))
    ports = { [`${host}:443`]: (tls.address() as AddressInfo).port }
  })
  afterAll(() => new Promise((resolve) => tls.close(resolve)))

  const run = async (variables: NodeJS.ProcessEnv): Promise<string> => {
    const { PATH, HOME, XDG_RUNTIME_DIR } = process.env
    const env = { PATH, HOME, XDG_RUNTIME_DIR, NODE_EXTRA_CA_CERTS: certificateFile, ...variables }
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [app, emptyFolder(), host, `${host}/library/tiny`],
      { env },
    )
    return stdout.trim()
  }

  test.each(['HTTPS_PROXY', 'https_proxy'])('pulls through a tunnel with %s', async (variable) => {
    const proxy = await startProxy('forward', ports)

    expect(await run({ [variable]: proxy.url })).toBe('success')

    expect(new Set(proxy.requests)).toEqual(new Set([`CONNECT ${host}:443`]))
  })

  test('logs in at the proxy', async () => {
    const proxy = await startProxy('forward', ports)

    expect(await run({ HTTPS_PROXY: proxy.url.replace('http://', 'http://ann:pass@') })).toBe('success')

    expect(new Set(proxy.credentials)).toEqual(
      new Set([`Basic ${Buffer.from('ann:pass').toString('base64')}`]),
    )
  })

  test.each([403, 407] as const)('reports a proxy that refuses the tunnel with %i', async (status) => {
    const proxy = await startProxy(status, ports)

    const printed = await run({
      HTTPS_PROXY: proxy.url.replace('http://', 'http://ann:secret-of-the-proxy@'),
    })

    expect(printed).toMatch(new RegExp(`^upstream: .*\\b${status}\\b.*, through the proxy ${proxy.url}$`))
    expect(printed).not.toContain('secret-of-the-proxy')
  })

  test('asks no proxy for a host of `NO_PROXY`', async () => {
    const proxy = await startProxy('forward', ports)

    const printed = await run({ HTTPS_PROXY: proxy.url, NO_PROXY: `example.com,${host}` })

    expect(printed).toMatch(/^upstream: .*(ENOTFOUND|EAI_AGAIN)/)
    expect(proxy.requests).toEqual([])
  })

  test('asks no proxy with `HTTP_PROXY` only', async () => {
    const proxy = await startProxy('forward', ports)

    expect(await run({ HTTP_PROXY: proxy.url })).toMatch(/^upstream: .*(ENOTFOUND|EAI_AGAIN)/)

    expect(proxy.requests).toEqual([])
  })
})
