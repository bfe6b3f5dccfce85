/** Pulls onto a disk without enough space. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { noiseBlob, SmallRegistry } from '../support/registry.ts'
import { all, madeModel, pull, put, storeFor } from '../support/transfers.ts'

// Only root can mount a small disk.
describe.runIf(process.platform === 'linux' && process.getuid?.() === 0)('pulls onto a disk of 8 MB', () => {
  const parent = emptyFolder()
  const disk = join(parent, 'disk')
  let registry: SmallRegistry
  const weights = noiseBlob('full', 5_000_000)
  const tiny = () => `${registry.host}/library/tiny`
  const store = () => storeFor([registry.host], { root: disk })
  const filler = join(disk, 'filler')
  /** Fills the disk except for this many bytes. */
  const fill = (leave: number): void => {
    const { bavail, bsize } = statfsSync(disk)
    writeFileSync(filler, Buffer.alloc(bavail * bsize - leave))
  }

  beforeAll(async () => {
    registry = await SmallRegistry.start()
    put(registry, 'library/tiny', madeModel(weights))
  })
  afterAll(() => registry.close())
  beforeEach(() => {
    mkdirSync(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m,mode=700', 'none', disk])
  })
  afterEach(() => {
    execFileSync('umount', [disk])
    rmSync(disk, { recursive: true })
    registry.forget()
  })

  test('do not request a blob larger than the free space', async () => {
    fill(2_000_000)

    await expect(all(pull(store(), tiny()))).rejects.toMatchObject({ code: 'too_large' })

    expect(registry.requests.filter(({ path }) => path.includes('/blobs/'))).toEqual([])
  })

  test('end at once when the disk becomes full, and the next pull resumes after space is freed', async () => {
    const policy = { stallMs: 10_000, pauseMs: 60_000, maxFailures: 6, partBytes: 1_000_000 }
    let isFilled = false
    registry.intercept(new RegExp(`^GET .*${weights.digest}`), () => {
      if (!isFilled) fill(2_000_000)
      isFilled = true
      return false
    })

    await expect(all(pull(storeFor([registry.host], { root: disk, policy }), tiny()))).rejects.toMatchObject({
      code: 'too_large',
    })

    expect(readdirSync(join(disk, 'blobs'))).not.toContain(weights.digest.replace(':', '-'))
    rmSync(filler)
    registry.forget()
    expect((await all(pull(storeFor([registry.host], { root: disk, policy }), tiny()))).at(-1)).toEqual({
      status: 'success',
    })
    expect(await store().blobs.find(weights.digest as never)).toMatchObject({ sizeBytes: weights.sizeBytes })
  })
})
