/** Runs the tests of `node-test/`, so that `vitest run` runs all tests of this folder. `npm run test:node` runs them alone. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test("the tests for Node's own runner pass", async () => {
  const { NODE_OPTIONS: _ofVitest, NODE_TEST_CONTEXT: _ofNode, ...env } = process.env
  const args = ['--test', '--test-reporter=tap', 'node-test/stories.js']

  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname, env })

  expect(stdout).toMatch(/^# pass 2$/m)
  expect(stdout).toMatch(/^# fail 0$/m)
})
