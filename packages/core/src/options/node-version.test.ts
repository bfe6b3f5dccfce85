import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { LlmError } from '../errors.ts'
import { expectNodeVersion, minNodeVersion } from './node-version.ts'

test.each(['18.20.8', '20.18.3', '16.0.0'])('Node.js %s is rejected, with the way out', (version) => {
  const attempt = (): void => expectNodeVersion(version)

  expect(attempt).toThrow(LlmError)
  expect(attempt).toThrow(
    `Modelmount needs Node.js 20.19 or later, but this is ${version}. Install a newer one, such as: nvm install 22`,
  )
})

test.each(['20.19.0', '20.20.1', '21.0.0', '22.23.5', '24.22.3'])('Node.js %s is accepted', (version) => {
  expect(() => expectNodeVersion(version)).not.toThrow()
})

test('the manifest of the package names the same version', () => {
  const { engines } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

  expect(engines.node).toBe(`>=${minNodeVersion}`)
})
