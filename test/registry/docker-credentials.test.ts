/** Docker's registry with a password, and with a token server. */
import { execFileSync } from 'node:child_process'
import { createPrivateKey, randomUUID, sign, X509Certificate } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm, type StoreOptions } from '@modelmount/core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.mjs'
import { emptyFolder } from '../support/empty-folder.ts'
import { type Listening, listen } from '../support/listen.ts'

const folder = emptyFolder()
const ada = { username: 'ada', password: 'secret-word' }
const basic = `Basic ${Buffer.from('ada:secret-word').toString('base64')}`

/** Pushes a model to the registry, deletes it, and pulls it. Returns the last status of each transfer. */
async function transfer(
  { host }: DockerRegistry,
  credentials: StoreOptions['credentials'],
  ...otherHosts: readonly string[]
) {
  const store = { privateRegistries: [host, ...otherHosts], credentials }
  const llm = await createLlm({ models: emptyFolder(), store })
  const name = `${host}/team/bob`
  const end = async (events: AsyncIterable<{ readonly status: string }>): Promise<string | undefined> => {
    let status: string | undefined
    for await (const event of events) status = event.status
    return status
  }
  try {
    await end(llm.models.create({ name, from: 'tiny', system: 'You are Bob.' }))
    const pushed = await end(llm.models.push(name, { insecure: true }))
    await llm.models.delete(name)
    const pulled = await end(llm.models.pull(name, { insecure: true }))
    return [pushed, pulled, (await llm.models.get(name)).defaults?.system]
  } finally {
    await llm.close()
  }
}

describe.runIf(hasDockerRegistry || process.env.CI)('with a password', () => {
  let registry: DockerRegistry

  beforeAll(async () => {
    // The hash is bcrypt's of `secret-word`.
    const file = join(folder, 'htpasswd')
    writeFileSync(file, 'ada:$2b$05$nWgEH5jiutBrmAzbjphlA.HzergkYNO7U.Ljobtz3c0/jJCxhSiBe\n')
    registry = await startDockerRegistry(`auth: { htpasswd: { realm: models, path: '${file}' } }\n`)
  })
  afterAll(() => registry.close())

  test('a model is pushed and pulled', async () => {
    expect(await transfer(registry, { [registry.url]: ada })).toEqual(['success', 'success', 'You are Bob.'])
  })

  test('a model is pushed and pulled with the credentials of a file', async () => {
    const file = join(folder, 'auth.json')
    const auth = Buffer.from('ada:secret-word').toString('base64')
    writeFileSync(file, JSON.stringify({ auths: { [registry.url]: { auth } } }))

    expect(await transfer(registry, file)).toEqual(['success', 'success', 'You are Bob.'])
  })

  test.each([
    ['a wrong password', { ...ada, password: 'other' }],
    ['no credentials', undefined],
  ])('with %s, the push ends with code permission', async (_what, login) => {
    const pushing = transfer(registry, login && { [registry.url]: login })

    await expect(pushing).rejects.toMatchObject({
      code: 'permission',
      message: expect.stringContaining('unauthorized: access denied'),
    })
  })
})

describe.runIf(hasDockerRegistry || process.env.CI)('with a token server', () => {
  let tokenServer: Listening
  let registry: DockerRegistry
  /** Requests for tokens. */
  const requests: { readonly authorization: string | undefined; readonly scopes: readonly string[] }[] = []

  beforeAll(async () => {
    const [keyFile, certificateFile] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
    const files = ['-keyout', keyFile, '-out', certificateFile]
    execFileSync('openssl', ['req', '-x509', ...curve, ...files, '-days', '2', '-subj', '/CN=tokens'], {
      stdio: 'ignore',
    })
    const issue = createIssuer(readFileSync(keyFile, 'utf8'), readFileSync(certificateFile, 'utf8'))
    tokenServer = await listen((request, response) => {
      const { searchParams } = new URL(request.url ?? '', 'http://tokens')
      const scopes = searchParams.getAll('scope')
      requests.push({ authorization: request.headers.authorization, scopes })
      if (request.headers.authorization !== basic) return response.writeHead(401).end()
      return response.end(JSON.stringify({ token: issue(scopes) }))
    })
    const realm = `${tokenServer.url}/token`
    registry = await startDockerRegistry(
      `auth: { token: { realm: '${realm}', service: models, issuer: tests, rootcertbundle: '${certificateFile}' } }\n`,
    )
  })
  afterEach(() => {
    requests.length = 0
  })
  afterAll(() => Promise.all([tokenServer.close(), registry.close()]))

  test('a model is pushed and pulled with tokens, for which the password is exchanged', async () => {
    const credentials = { [registry.url]: { ...ada, realm: tokenServer.url } }

    const transferred = await transfer(registry, credentials, new URL(tokenServer.url).host)

    expect(transferred).toEqual(['success', 'success', 'You are Bob.'])
    expect(new Set(requests.map(({ authorization }) => authorization))).toEqual(new Set([basic]))
    // The registry names the actions in any order.
    const scopes = requests.flatMap(({ scopes }) => scopes)
    expect(scopes.some((scope) => /^repository:team\/bob:(pull,push|push,pull)$/.test(scope))).toBe(true)
  })

  test('a token server at a private address that the app does not list gets no request', async () => {
    const transferring = transfer(registry, { [registry.url]: { ...ada, realm: tokenServer.url } })

    await expect(transferring).rejects.toMatchObject({
      code: 'permission',
      message: expect.stringContaining(`${tokenServer.url} is blocked: `),
    })
    expect(requests).toEqual([])
  })

  test('a token server that the credentials do not name gets no request', async () => {
    await expect(transfer(registry, { [registry.url]: ada })).rejects.toMatchObject({
      code: 'permission',
      message: expect.stringContaining('does not match original host'),
    })

    expect(requests).toEqual([])
  })
})

/** Creates a function that signs tokens for the given scopes, as in Docker's token authentication. */
function createIssuer(keyPem: string, certificatePem: string): (scopes: readonly string[]) => string {
  const certificate = new X509Certificate(certificatePem).raw.toString('base64')
  const key = createPrivateKey(keyPem)
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  return (scopes) => {
    const now = Math.floor(Date.now() / 1_000)
    const access = scopes.map((scope) => {
      const [type, name, actions = ''] = scope.split(':')
      return { type, name, actions: actions.split(',') }
    })
    const claims = { iss: 'tests', sub: 'ada', aud: 'models', jti: randomUUID(), access }
    const signed = `${encode({ typ: 'JWT', alg: 'ES256', x5c: [certificate] })}.${encode({
      ...claims,
      ...{ iat: now, nbf: now - 60, exp: now + 300 },
    })}`
    const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
    return `${signed}.${signature.toString('base64url')}`
  }
}
