/** The disk of the runtime folder was full, and calls failed after half a minute without the reason. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../support/empty-folder.ts'

const parent = emptyFolder()
/** Only root can mount a disk. */
const canMount = process.platform === 'linux' && process.getuid?.() === 0

/** Mounts a disk with one page for the contents of files, and with room for this many files and folders. */
function mountDisk(name: string, files: number): string {
  const disk = join(parent, name)
  mkdirSync(disk)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=4k,nr_inodes=${files + 1},mode=700`, 'none', disk])
  onTestFinished(() => void execFileSync('umount', ['-l', disk]))
  return disk
}
const fill = (disk: string): void => writeFileSync(join(disk, 'filler'), 'x'.repeat(4_096))

async function load(runtimeDir: string): Promise<unknown> {
  const llm = await createLlm({ local: { runtimeDir, contextSize: 256 } })
  onTestFinished(() => llm.close())
  return llm.chat('Hello', { maxTokens: 2 }).catch((error) => error)
}

test.runIf(canMount).each([
  ['of a process', 1],
  ['of a log', 2],
  ['of a lock', 3],
])('a disk without room for the file %s is named, with its folder in the cause', async (_, files) => {
  const disk = mountDisk(`files-${files}`, files)
  fill(disk)
  const startedAt = performance.now()

  const error = await load(disk)

  expect(error).toMatchObject({
    code: 'upstream',
    message: expect.stringMatching(/the disk of its runtime folder is full.*`local\.runtimeDir`/),
    cause: { message: expect.stringContaining(disk) },
  })
  expect((error as Error).message).not.toContain(disk)
  expect(performance.now() - startedAt).toBeLessThan(9_000)
})

test.runIf(canMount)(
  'a disk without room for the record of a process is named, and no part of it stays',
  async () => {
    const disk = mountDisk('records', 20)
    fill(disk)
    const startedAt = performance.now()

    const error = await load(disk)

    expect(error).toMatchObject({
      code: 'upstream',
      message: expect.stringMatching(/the disk of its runtime folder is full.*`local\.runtimeDir`/),
      cause: { message: expect.stringContaining(disk) },
    })
    expect(performance.now() - startedAt).toBeLessThan(9_000)
    expect(readdirSync(disk)).toEqual(['filler'])
  },
)

test.runIf(canMount)(
  'each call names the full disk, and the first one after it has room again is answered',
  async () => {
    const disk = mountDisk('repeated', 20)
    fill(disk)
    const llm = await createLlm({ local: { runtimeDir: disk, contextSize: 256 } })
    onTestFinished(() => llm.close())
    const ask = () => llm.chat('Hello', { maxTokens: 2 })

    for (let call = 0; call < 4; call++)
      await expect(ask()).rejects.toThrow('the disk of its runtime folder is full')
    execFileSync('mount', ['-o', 'remount,size=16m', disk])

    expect((await ask()).usage.outputTokens).toBeGreaterThan(0)
  },
)
