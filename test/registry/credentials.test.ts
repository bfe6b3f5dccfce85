/** Credentials go only to the registry in the model's name. */
import { execFileSync, spawnSync } from 'node:child_process'
import { createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { RegistryCredentials } from '../../packages/core/src/models/registry/credentials.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { noiseBlob, SmallRegistry } from '../support/registry.ts'
import { all, madeModel, pull, push, put, storeFor } from '../support/transfers.ts'

let registry: SmallRegistry
let elsewhere: SmallRegistry
const weights = noiseBlob('protected', 300_000)
beforeAll(async () => {
  registry = await SmallRegistry.start()
  elsewhere = await SmallRegistry.start()
  put(registry, 'library/tiny', madeModel(weights))
  elsewhere.addBlob(weights)
})
afterEach(() => {
  registry.forget()
  elsewhere.forget()
})
afterAll(() => Promise.all([registry.close(), elsewhere.close()]))

const store = () => storeFor([registry.host, elsewhere.host])
const tiny = () => `${registry.host}/library/tiny`
const granted = 'a.b-c_d'

/** Makes all paths below `/v2/` require the token. `realm` is the URL that issues tokens. */
function protect(
  realm: string,
  answer: (request: IncomingMessage, response: ServerResponse) => void = grant,
): void {
  registry.intercept(/ \/v2\//, ({ headers }, response) => {
    if (headers.authorization === `Bearer ${granted}`) return false
    const challenge = `Bearer realm="${realm}",service="registry",scope="repository:library/tiny:pull repository:other:pull"`
    return response.writeHead(401, { 'www-authenticate': challenge }).end('{"errors":[]}')
  })
  registry.intercept(/ \/token/, answer)
}
const grant = (_: IncomingMessage, response: ServerResponse): void => {
  response.end(JSON.stringify({ token: granted }))
}
const requestsTo = (path: string) => registry.requests.filter((request) => request.path.startsWith(path))

test('a pull requests a token once, and sends it with all later requests', async () => {
  protect(`${registry.url}/token?account=1`)

  const events = await all(pull(store(), tiny()))

  expect(events.at(-1)?.status).toBe('success')
  const [first, ...more] = requestsTo('/token')
  expect(more).toEqual([])
  const query = new URL(first?.path ?? '', registry.url).searchParams
  expect(query.getAll('scope')).toEqual(['repository:library/tiny:pull', 'repository:other:pull'])
  expect([query.get('service'), query.get('account')]).toEqual(['registry', '1'])
  // Without a key file, the token request is unsigned.
  expect(first?.headers.authorization).toBeUndefined()
})

test('after concurrent 401 responses, a pull requests only one token', async () => {
  const parts = { stallMs: 5_000, pauseMs: 1, maxFailures: 6, partBytes: 30_000 }
  let isOpen = true
  registry.intercept(/ \/v2\/.*manifests/, (_, response) => {
    isOpen = false
    response.writeHead(200).end(madeModel(weights).manifest)
  })
  registry.intercept(/ \/v2\/.*blobs/, ({ headers }, response) => {
    if (isOpen || headers.authorization) return false
    return response.writeHead(401, { 'www-authenticate': `Bearer realm="${registry.url}/token"` }).end()
  })
  registry.intercept(/ \/token/, grant)

  await all(pull(storeFor([registry.host], { policy: parts }), tiny()))

  expect(requestsTo('/token')).toHaveLength(1)
})

test('a push to a protected registry succeeds with a token', async () => {
  const pushing = store()
  await all(pull(pushing, tiny()))
  protect(`${registry.url}/token`)

  const events = await all(push(pushing, tiny()))

  expect(events.at(-1)?.status).toBe('success')
})

test('a pull sends no token request to a realm on another host', async () => {
  protect(`${elsewhere.url}/token`)

  await expect(all(pull(store(), tiny()))).rejects.toMatchObject({
    message: `pull model manifest: realm host "${elsewhere.host}" does not match original host "${registry.host}"`,
  })

  expect(elsewhere.requests).toEqual([])
})

test.each(['https', 'http', 'file'])(
  'a pull sends no token request to a realm that only starts with the host of the registry: %s',
  async (scheme) => {
    protect(`${scheme}://${registry.host}@${elsewhere.host}/token`)

    await expect(all(pull(store(), tiny()))).rejects.toMatchObject({ code: 'permission' })

    expect([...elsewhere.requests, ...requestsTo('/token')]).toEqual([])
  },
)

test.each([
  ['no token', '{}'],
  ['a token with a line break', JSON.stringify({ token: 'a\r\nx-evil: 1' })],
  ['a token that is no string', JSON.stringify({ token: 5 })],
  ['text that is not JSON', 'sorry'],
  ['an overlong body', 'x'.repeat(100_000)],
])('a token response with %s ends the pull', async (_, body) => {
  protect(`${registry.url}/token`, (__, response) => response.end(body))

  await expect(all(pull(store(), tiny()))).rejects.toMatchObject({ code: 'upstream' })
})

test('a pull fails with code permission if the registry rejects the token', async () => {
  protect(`${registry.url}/token`, (_, response) => response.end('{"token":"other"}'))

  await expect(all(pull(store(), tiny()))).rejects.toMatchObject({
    code: 'permission',
    message: 'pull model manifest: unauthorized: access denied',
  })

  expect(requestsTo('/token')).toHaveLength(1)
})

test('a redirected request to another origin contains no token', async () => {
  protect(`${registry.url}/token`)
  registry.intercept(new RegExp(`^GET .*${weights.digest}$`), ({ headers }, response) => {
    if (headers.authorization !== `Bearer ${granted}`) return false
    const location = `${elsewhere.url}/v2/library/tiny/blobs/${weights.digest}`
    return response.writeHead(307, { location }).end()
  })

  await all(pull(store(), tiny()))

  expect(elsewhere.requests).toHaveLength(1)
  expect(elsewhere.requests[0]?.headers.authorization).toBeUndefined()
  expect(elsewhere.requests[0]?.headers.range).toBe(`bytes=0-${weights.sizeBytes - 1}`)
})

test('an upload to another origin contains no token', async () => {
  const pushing = store()
  await all(pull(pushing, tiny()))
  protect(`${registry.url}/token`)
  registry.intercept(/^HEAD .*blobs/, ({ headers }, response) =>
    headers.authorization ? response.writeHead(404).end() : false,
  )
  registry.intercept(/^POST .*uploads/, (_, response) =>
    response.writeHead(202, { location: `${elsewhere.url}/stolen` }).end(),
  )

  await expect(all(push(pushing, tiny()))).rejects.toMatchObject({ code: 'upstream' })

  expect(elsewhere.requests.length).toBeGreaterThan(0)
  for (const { headers } of elsewhere.requests) expect(headers.authorization).toBeUndefined()
})

const ada = { username: 'ada', password: 'secret: word' }
const basic = `Basic ${Buffer.from('ada:secret: word').toString('base64')}`
/** A store with credentials for the registry. */
const loginStore = (login: RegistryCredentials) =>
  storeFor([registry.host, elsewhere.host], { credentials: { entries: { [registry.url]: login } } })

/** Makes all paths below `/v2/` require the password. */
function requirePassword(): void {
  registry.intercept(/ \/v2\//, ({ headers }, response) => {
    if (headers.authorization === basic) return false
    return response.writeHead(401, { 'www-authenticate': 'Basic realm="models"' }).end('{"errors":[]}')
  })
}

test('a registry that asks for a password gets it, after its first 401', async () => {
  requirePassword()
  const store = loginStore(ada)

  await all(pull(store, tiny()))
  const events = await all(push(store, tiny()))

  expect(events.at(-1)?.status).toBe('success')
  expect(registry.requests.map(({ headers }) => headers.authorization).slice(0, 3)).toEqual([
    undefined,
    basic,
    basic,
  ])
})

test('a registry without credentials gets none, and its 401 ends the pull', async () => {
  requirePassword()
  const other = storeFor([registry.host], { credentials: { entries: { [elsewhere.url]: ada } } })

  await expect(all(pull(other, tiny()))).rejects.toMatchObject({
    code: 'permission',
    message: 'pull model manifest: unauthorized: access denied',
  })

  for (const { headers } of registry.requests) expect(headers.authorization).toBeUndefined()
})

test('a wrong password ends the pull after one attempt, and is not in the error', async () => {
  requirePassword()

  const error: Error = await all(pull(loginStore({ ...ada, password: 'wrong word' }), tiny())).then(
    () => expect.unreachable(),
    (cause) => cause,
  )

  expect(error).toMatchObject({ code: 'permission', message: expect.stringContaining('access denied') })
  expect(inspect(error, { depth: 9 })).not.toContain('wrong word')
  expect(registry.requests).toHaveLength(2)
})

test('credentials for https are never sent over http', async () => {
  requirePassword()
  const secure = storeFor([registry.host], {
    credentials: { entries: { [`https://${registry.host}`]: ada } },
  })

  await expect(all(pull(secure, tiny()))).rejects.toMatchObject({
    code: 'permission',
    message: `pull model manifest: unauthorized: the credentials of ${registry.host} are for https. To send them over http, name ${registry.url} in their place`,
  })

  for (const { headers } of registry.requests) expect(headers.authorization).toBeUndefined()
})

test('a password does not follow a redirect or an upload to another origin', async () => {
  requirePassword()
  registry.intercept(new RegExp(`^GET .*${weights.digest}$`), ({ headers }, response) => {
    if (headers.authorization !== basic) return false
    const location = `${elsewhere.url}/v2/library/tiny/blobs/${weights.digest}`
    return response.writeHead(307, { location }).end()
  })
  const store = loginStore(ada)
  await all(pull(store, tiny()))
  registry.intercept(/^HEAD .*blobs/, (_, response) => response.writeHead(404).end())
  registry.intercept(/^POST .*uploads/, ({ headers }, response) =>
    headers.authorization ? response.writeHead(202, { location: `${elsewhere.url}/stolen` }).end() : false,
  )

  await expect(all(push(store, tiny()))).rejects.toMatchObject({ code: 'upstream' })

  expect(elsewhere.requests.length).toBeGreaterThan(1)
  for (const { headers } of elsewhere.requests) expect(headers.authorization).toBeUndefined()
})

test('a token server at the registry gets the password, and the registry the token', async () => {
  protect(`${registry.url}/token`)

  await all(pull(loginStore(ada), tiny()))

  expect(requestsTo('/token').map(({ headers }) => headers.authorization)).toEqual([basic])
  for (const { headers } of requestsTo('/v2/').slice(1))
    expect(headers.authorization).toBe(`Bearer ${granted}`)
})

test('a token server at another origin gets the password only if the credentials name it', async () => {
  protect(`${elsewhere.url}/token`)
  elsewhere.intercept(/ \/token/, grant)

  await expect(all(pull(loginStore(ada), tiny()))).rejects.toMatchObject({
    message: `pull model manifest: realm host "${elsewhere.host}" does not match original host "${registry.host}"`,
  })
  expect(elsewhere.requests).toEqual([])
  const events = await all(pull(loginStore({ ...ada, realm: elsewhere.url }), tiny()))

  expect(events.at(-1)?.status).toBe('success')
  expect(elsewhere.requests.map(({ headers }) => headers.authorization)).toEqual([basic])
  for (const { headers } of requestsTo('/v2/')) expect(headers.authorization).not.toBe(basic)
})

test('the redirect of a token server to another origin contains no password', async () => {
  protect(`${registry.url}/token`, (_, response) =>
    response.writeHead(302, { location: `${elsewhere.url}/token` }).end(),
  )
  elsewhere.intercept(/ \/token/, grant)

  await all(pull(loginStore(ada), tiny()))

  expect(elsewhere.requests.map(({ headers }) => headers.authorization)).toEqual([undefined])
})

test('a token server that rejects the password ends the pull with code permission', async () => {
  protect(`${registry.url}/token`, (_, response) => response.writeHead(401).end('{}'))

  await expect(all(pull(loginStore(ada), tiny()))).rejects.toMatchObject({
    code: 'permission',
    message: 'pull model manifest: unauthorized: the token server rejects the credentials',
  })

  expect(requestsTo('/token')).toHaveLength(1)
})

test('a token is sent as it is, without a request for another one', async () => {
  protect(`${registry.url}/token`)

  await all(pull(loginStore({ token: granted }), tiny()))

  expect(requestsTo('/token')).toEqual([])
})

const hasKeygen = spawnSync('ssh-keygen', ['-?']).error === undefined

test.runIf(hasKeygen || process.env.CI)(
  'a token request is signed with the key file, if it exists',
  async () => {
    const folder = emptyFolder()
    const keyFile = join(folder, 'id_ed25519')
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'a comment', '-f', keyFile])
    protect(`${registry.url}/token`)

    await all(pull(storeFor([registry.host], { keyFile }), tiny()))

    const { path = '', headers } = requestsTo('/token')[0] ?? {}
    const [key = '', signature = ''] = headers?.authorization?.split(':') ?? []
    expect(key).toBe(readFileSync(`${keyFile}.pub`, 'utf8').split(' ')[1])
    const x = Buffer.from(key, 'base64').subarray(-32).toString('base64url')
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
    const emptyBody = Buffer.from(
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    ).toString('base64')
    const signed = Buffer.from(`GET,${registry.url}${path},${emptyBody}`)
    expect(verify(null, signed, publicKey, Buffer.from(signature, 'base64'))).toBe(true)
    const names = [...new URL(path, registry.url).searchParams.keys()]
    expect(names).toEqual(['nonce', 'scope', 'scope', 'service', 'ts'])
    // Only the token endpoint gets the signature.
    for (const request of requestsTo('/v2/')) expect(request.headers.authorization ?? '').not.toContain(key)
  },
)
