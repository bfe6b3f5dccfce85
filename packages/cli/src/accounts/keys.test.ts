import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type ApiKey, createLlm, type KeyWithSecret } from '@modelmount/core'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'

const bin = fileURLToPath(new URL('../../bin/modelmount.js', import.meta.url))
let data: string

beforeEach(() => {
  data = join(emptyFolder(), 'deep', 'data')
})

const environment = () => ({ ...process.env, OLLAMA_HOST: '', OLLAMA_MODELS: emptyFolder() })

const keys = async (...args: readonly string[]): Promise<string> => {
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [bin, 'keys', ...args, '--data', data],
    { env: environment() },
  )
  expect(stderr).toBe('')
  return stdout
}

const created = async (...args: readonly string[]): Promise<KeyWithSecret> =>
  JSON.parse(await keys('create', ...args, '--json'))

async function serve() {
  const child = spawn(process.execPath, [bin, 'serve', '--port', '0', '--auth', 'keys', '--data', data], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment(),
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return { url: String(line).replace('Listening on ', ''), output: () => output }
}

test('a running server accepts a new key, and rejects it once revoked', async () => {
  const { url, output } = await serve()
  const { key, secret } = await created('laptop', '--models', 'tiny', '--expires', '30d')
  const status = async (headers: Record<string, string>) =>
    (await fetch(`${url}/v1/models`, { headers })).status

  expect(await status({})).toBe(401)
  expect(await status({ 'x-api-key': secret })).toBe(200)
  expect(await status({ authorization: `Bearer ${secret}` })).toBe(200)
  const { secret: next } = JSON.parse(
    await keys('rotate', key.id, '--grace', '0s', '--json'),
  ) as KeyWithSecret
  expect([await status({ 'x-api-key': secret }), await status({ 'x-api-key': next })]).toEqual([401, 200])
  await keys('revoke', key.id)
  expect(await status({ 'x-api-key': next })).toBe(401)

  for (const canary of [secret, next]) expect(output()).not.toContain(canary.slice(-43))
  expect((statSync(join(data, 'modelmount.db')).mode & 0o777).toString(8)).toBe('600')
})

test('changes are in the audit log, without the secret', async () => {
  const { key, secret } = await created('laptop', '--tenant', 'acme', '--rpm', '60')
  await keys('update', key.id, '--name', 'desktop')
  await keys('rotate', key.id, '--grace', '1h')
  await keys('revoke', key.id)
  await expect(keys('rotate', key.id)).rejects.toMatchObject({ code: 1 })
  const llm = await createLlm({ models: [], auth: 'keys', database: join(data, 'modelmount.db') })
  onTestFinished(() => llm.close())

  const entries = await llm.audit.list()
  expect(entries.every(({ caller, target }) => caller === 'command line' && target === key.id)).toBe(true)
  expect(entries.map(({ action, tenant, changes, outcome }) => [action, tenant, changes, outcome])).toEqual([
    ['rotateKey', 'acme', {}, 'failure'],
    ['revokeKey', 'acme', {}, 'success'],
    ['rotateKey', 'acme', { grace: '1h' }, 'success'],
    ['updateKey', 'acme', { name: 'desktop' }, 'success'],
    ['createKey', 'acme', { name: 'laptop', tenant: 'acme', limits: { requestsPerMinute: 60 } }, 'success'],
  ])
  expect(JSON.stringify(entries)).not.toContain(secret.slice(-43))
})

test('commands send the key of $MODELMOUNT_API_KEY', async () => {
  const { url } = await serve()
  const { secret } = await created('commands')
  const list = (key: string) =>
    promisify(execFile)(process.execPath, [bin, 'list', '--host', url], {
      env: { ...environment(), MODELMOUNT_API_KEY: key },
    })

  expect((await list(secret)).stdout).toContain('tiny:latest')
  await expect(list('')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/API key required.*set \$MODELMOUNT_API_KEY\./),
  })
  await expect(list('wrong')).rejects.toMatchObject({
    stderr: expect.stringMatching(/Invalid API key.*from \$MODELMOUNT_API_KEY/),
  })
})

test('options set all settings of a key', async () => {
  const { key } = await created(
    ...[
      'everything',
      '--rpm',
      '60',
      '--tpm',
      '10000',
      '--itpm',
      '8000',
      '--otpm',
      '4000',
      '--tpd',
      '500000',
      '--concurrent',
      '2',
      '--max-output-tokens',
      '400',
      '--end-user-rpm',
      '6',
      '--end-user-tpm',
      '1000',
      '--end-user-concurrent',
      '1',
      '--spend',
      '2.50',
      '--per',
      'month',
    ],
    ...[
      '--scopes',
      'inference,models',
      '--models',
      'tiny, other',
      '--tier',
      'gold',
      '--tenant',
      'team',
      '--expires',
      '2040-01-02T00:00:00Z',
    ],
  )

  expect(key).toMatchObject({
    name: 'everything',
    limits: {
      requestsPerMinute: 60,
      tokensPerMinute: 10_000,
      inputTokensPerMinute: 8_000,
      outputTokensPerMinute: 4_000,
      tokensPerDay: 500_000,
      concurrent: 2,
      maxOutputTokens: 400,
      perEndUser: { requestsPerMinute: 6, tokensPerMinute: 1_000, concurrent: 1 },
    },
    spendingLimit: { usd: 2.5, period: 'month' },
    scopes: ['inference', 'models'],
    models: ['tiny', 'other'],
    tier: 'gold',
    tenant: 'team',
    expiresAt: '2040-01-02T00:00:00.000Z',
  })
  const listed = await keys('list')
  expect(listed).toMatch(/everything +key_\w+ +team +sk-mm/)
  expect(listed).toContain(
    'gold, 60 rpm, 10000 tpm, 8000 itpm, 4000 otpm, 500000 tpd, 2 at once, 400 output tokens a call, ' +
      '6 rpm an end user, 1000 tpm an end user, 1 at once an end user, $2.50 a month',
  )
})

test('update changes the given settings, and none removes one', async () => {
  const { key } = await created(
    ...['laptop', '--rpm', '60', '--tpm', '1000', '--end-user-rpm', '6', '--end-user-tpm', '100'],
    ...['--spend', '2', '--per', 'month', '--models', 'tiny', '--tier', 'gold', '--tenant', 'team'],
    ...['--expires', '2040-01-02'],
  )
  const update = async (...args: readonly string[]): Promise<ApiKey> =>
    JSON.parse(await keys('update', key.id, ...args, '--json'))

  const changed = await update('--name', 'desk', '--rpm', '90', '--tpm', 'none', '--end-user-rpm', 'none')
  const paid = await update('--spend', '2.5')
  const freed = await update(
    ...['--rpm', 'none', '--end-user-tpm', 'none', '--spend', 'none', '--models', 'none'],
    ...['--tier', 'none', '--tenant', 'none', '--expires', 'none', '--scopes', 'inference,models'],
  )

  expect(changed).toMatchObject({ name: 'desk', models: ['tiny'], tier: 'gold', tenant: 'team' })
  expect(changed.limits).toEqual({ requestsPerMinute: 90, perEndUser: { tokensPerMinute: 100 } })
  expect(paid.spendingLimit).toEqual({ usd: 2.5, period: 'month' })
  expect(freed).toEqual({
    ...{ id: key.id, name: 'desk', tenant: key.id, hint: key.hint, status: 'active' },
    ...{ scopes: ['inference', 'models'], createdAt: key.createdAt },
  })
})

test('show prints the settings of one key', async () => {
  const { key } = await created('laptop', '--rpm', '60', '--tier', 'gold', '--expires', '2040-01-02')

  const shown = await keys('show', key.id)

  expect(shown).toContain(`  name         laptop\n  id           ${key.id}\n  tenant       own\n`)
  expect(shown).toContain('  limits       gold, 60 rpm\n')
  expect(shown).toContain('  expires      2040-01-02T00:00:00.000Z\n  last used    never\n')
  expect(JSON.parse(await keys('show', key.id, '--json'))).toEqual(key)
  expect(await keys('update', key.id, '--tier', 'none')).toContain('  limits       60 rpm\n')
})

test('prints the secret once, and never lists it', async () => {
  const printed = await keys('create', 'once')
  const [secret = ''] = printed.split('\n')

  expect(secret).toMatch(/^sk-mm-/)
  expect(printed).toContain('It is shown once')
  const listed = JSON.parse(await keys('list', '--json')) as ApiKey[]
  expect(listed).toMatchObject([{ name: 'once', status: 'active', scopes: ['inference'] }])
  expect(listed[0]?.tenant).toBe(listed[0]?.id)
  expect(JSON.stringify(listed)).not.toContain(secret.slice(-43))
  expect(await keys('revoke', listed[0]?.id ?? '')).toContain('Revoked the key once')
})

test('lists one page of keys, and says how to get the next one', async () => {
  for (const name of ['first', 'second', 'third']) await created(name)
  const run = (...args: readonly string[]) =>
    promisify(execFile)(process.execPath, [bin, 'keys', 'list', '--json', '--data', data, ...args], {
      env: environment(),
    })

  const { stdout, stderr } = await run('--limit', '2')
  const page = JSON.parse(stdout) as ApiKey[]
  const rest = await run('--limit', '2', '--after', page[1]?.id ?? '')

  expect(page.map(({ name }) => name)).toEqual(['third', 'second'])
  expect(stderr).toBe(`There may be more. The next page: --after ${page[1]?.id}\n`)
  expect((JSON.parse(rest.stdout) as ApiKey[]).map(({ name }) => name)).toEqual(['first'])
  expect(rest.stderr).toBe('')
})

test.each([
  [['list', '--limit', '0'], 'Expected a whole number from 1 to 1000'],
  [['list', '--limit', '1001'], 'Expected a whole number from 1 to 1000'],
  [['create', 'x', '--rpm', '0'], 'Expected a whole number from 1 to 999999999'],
  [['create', 'x', '--tpd', '100000001'], 'Expected a whole number from 1 to 100000000'],
  [['create', 'x', '--max-output-tokens', 'all'], 'Expected a whole number from 1 to 999999999'],
  [['create', 'x', '--spend', 'much'], 'Expected dollars'],
  [['create', 'x', '--spend', '9999999.5'], 'spendingLimit.usd'],
  [['create', 'x', '--per', 'day'], '--per requires --spend'],
  [['create', 'x', '--rpm', 'none'], 'Expected a whole number from 1 to 999999999'],
  [['update', 'key_none'], 'Name a setting to change, such as --rpm 60.'],
  [['create', 'x', '--scopes', 'root'], 'scopes[0]'],
  [['create', 'x', '--expires', 'soon'], 'expiresIn'],
  [['create', 'x', '--expires', '2027-02-30'], 'expiresAt'],
])('%j is an error that names the field', async (args, message) => {
  await expect(keys(...args)).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining(message) })
})

test.each([['revoke'], ['show'], ['update', '--rpm', '1']])(
  '%s rejects an unknown key',
  async (command, ...flags) => {
    await keys('create', 'other')

    await expect(keys(command, 'key_none', ...flags)).rejects.toMatchObject({
      stderr: expect.stringContaining('Key not found'),
    })
  },
)

test('accepts a grace in days, and an expiry date', async () => {
  const { key } = await created('old', '--expires', '2040-01-02')

  expect(key).toMatchObject({ expiresAt: '2040-01-02T00:00:00.000Z' })
  expect(await keys('rotate', key.id, '--grace', '7d')).toMatch(/^sk-mm-/)
  await expect(keys('rotate', key.id, '--grace', 'abc')).rejects.toMatchObject({
    stderr: expect.stringContaining("grace: Expected a duration such as '12h' or '7d'"),
  })
})

test.each([
  ['list'],
  ['show', 'key_a'],
  ['update', 'key_a', '--rpm', '1'],
  ['rotate', 'key_a'],
  ['revoke', 'key_a'],
])('%s rejects a folder without a database, and creates no database in it', async (...args) => {
  await expect(keys(...args)).rejects.toMatchObject({
    code: 1,
    stderr: `Error: No database found at ${join(data, 'modelmount.db')}. Name its folder: --data FOLDER.\n`,
  })
  expect(existsSync(data)).toBe(false)
})
