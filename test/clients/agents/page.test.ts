/** The page about agents and SDKs. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../../packaging/npm.ts'

const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const versionsIn = (text: string): readonly string[] => text.match(/\b\d+\.\d+\.\d+\b/g) ?? []

test('the versions on the page are those of the tests', () => {
  const manifests = ['javascript', 'ai-sdk-6', 'commands'].map((project) => `${project}/package.json`)
  const pinned = [...manifests, 'python/requirements.txt'].map((file) => read(`test/clients/agents/${file}`))
  const [table = ''] = read('docs/compatibility/clients.md').split('\n## Codex')
  const page = versionsIn(table)

  expect(page.length).toBeGreaterThan(10)
  expect(page.filter((version) => !pinned.some((text) => versionsIn(text).includes(version)))).toEqual([])
})
