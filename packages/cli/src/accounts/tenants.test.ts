import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createLlm } from '@modelmount/core'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'

const bin = fileURLToPath(new URL('../../bin/modelmount.js', import.meta.url))
const runCommand = (...args: readonly string[]) => promisify(execFile)(process.execPath, [bin, ...args])

test('deletes a tenant, prints what was deleted, and leaves other tenants', async () => {
  const data = emptyFolder()
  const llm = await createLlm({ models: [], auth: 'keys', database: join(data, 'modelmount.db') })
  onTestFinished(() => llm.close())
  for (const tenant of ['left', 'stays']) await llm.keys.create({ name: `of ${tenant}`, tenant })

  const { stdout } = await runCommand('tenants', 'delete', 'left', '--data', data)
  const again = await runCommand(
    'tenants',
    'delete',
    'left',
    '--usage',
    'anonymize',
    '--data',
    data,
    '--json',
  )

  expect(stdout).toMatch(/^Deleted the tenant left\.\n/)
  expect(stdout).toMatch(/^keys +1 *$/m)
  expect(JSON.parse(again.stdout)).toEqual({
    tenant: 'left',
    revokedKeys: 0,
    deleted: {
      batches: 0,
      files: 0,
      responses: 0,
      conversations: 0,
      calls: 0,
      anonymizedSums: 0,
      spending: 0,
      keys: 0,
      limitRequests: 0,
      trafficSums: 0,
      // Its own.
      erasedAuditEntries: 1,
    },
  })
  expect((await llm.keys.list()).map(({ name }) => name)).toEqual(['of stays'])
  expect(await llm.audit.list({ action: 'deleteTenant', caller: 'command line' })).toMatchObject([
    { target: '(deleted)', outcome: 'success' },
    { target: '(deleted)', outcome: 'success' },
  ])
})

test('rejects an empty id, and a folder without a database', async () => {
  const data = emptyFolder()
  await expect(runCommand('tenants', 'delete', 'left', '--data', data)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('No database found'),
  })
  await (await createLlm({ models: [], auth: 'keys', database: join(data, 'modelmount.db') })).close()

  await expect(runCommand('tenants', 'delete', '', '--data', data)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Expected the id of a tenant'),
  })
})
