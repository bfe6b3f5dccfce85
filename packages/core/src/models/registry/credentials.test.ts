import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../../test/support/empty-folder.ts'
import { findCredentials } from './credentials.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')

function fileWith(content: unknown): string {
  const file = join(emptyFolder(), 'config.json')
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}
const find = (file: string, origin: string) => findCredentials({ entries: {}, file }, origin)

test('a file of Docker has credentials by origin', async () => {
  const file = fileWith({
    auths: {
      'registry.example.com': { auth: base64('ada:a:b') },
      'registry.example.com:5000': { username: 'bob', password: 'c' },
      'http://10.0.0.5:5000': { registrytoken: 'abc.def' },
      'https://auth.example.com/v1/': { auth: base64('eve:d'), realm: 'token.example.com' },
    },
    credsStore: 'desktop',
  })

  expect(await find(file, 'https://registry.example.com')).toEqual({ username: 'ada', password: 'a:b' })
  expect(await find(file, 'https://registry.example.com:5000')).toEqual({ username: 'bob', password: 'c' })
  expect(await find(file, 'http://10.0.0.5:5000')).toEqual({ token: 'abc.def' })
  expect(await find(file, 'https://auth.example.com')).toEqual({
    ...{ username: 'eve', password: 'd', realm: 'https://token.example.com' },
  })
  expect(await find(file, 'http://registry.example.com')).toBeUndefined()
})

test.each([
  ['an empty entry', { auths: { 'a.example': {} } }],
  ['an entry without a password', { auths: { 'a.example': { auth: base64('ada') } } }],
  ['a token with a line break', { auths: { 'a.example': { registrytoken: 'a\nb' } } }],
  ['no entries', {}],
])('%s has no credentials', async (_what, content) => {
  expect(await find(fileWith(content), 'https://a.example')).toBeUndefined()
})

test('a missing file has no credentials, and a new file is read at once', async () => {
  const file = join(emptyFolder(), 'auth.json')
  const before = await find(file, 'https://a.example')
  writeFileSync(file, JSON.stringify({ auths: { 'a.example': { auth: base64('ada:b') } } }))

  expect([before, await find(file, 'https://a.example')]).toEqual([
    undefined,
    { username: 'ada', password: 'b' },
  ])
})

test.each(['{ "auths": "secret" }', 'secret', '{ "auths": { "a.example": { "auth": ["secret"] } } }'])(
  'an invalid file is an error that names it, without its content: %s',
  async (content) => {
    const file = fileWith(content)

    const error: unknown = await find(file, 'https://a.example').catch((cause) => cause)

    expect(error).toMatchObject({ code: 'internal', message: expect.stringContaining(file) })
    expect(inspect(error, { depth: 9 })).not.toContain('secret')
  },
)
