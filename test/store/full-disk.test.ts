/** Uploads to a full disk, simulated by the operating system's limit for file sizes. */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'

const run = promisify(execFile)
const script = fileURLToPath(new URL('full.mjs', import.meta.url))

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'full-disk-'))
})

afterEach(() => rm(folder, { recursive: true }))

test.skipIf(process.platform === 'win32')(
  'an upload beyond the disk space fails with a typed error, and leaves other blobs unchanged',
  async () => {
    const limited = 'ulimit -f 1024 && exec "$0" "$@"'

    const { stdout } = await run('bash', [
      '-c',
      limited,
      process.execPath,
      script,
      folder,
      String(8 * 1024 ** 2),
    ])

    expect(JSON.parse(stdout)).toEqual([
      'written',
      'LlmError too_large: There is no space left on the disk of the models.',
      'written',
    ])
    const files = await readdir(join(folder, 'blobs'))
    const sizes = await Promise.all(files.map(async (file) => (await stat(join(folder, 'blobs', file))).size))
    expect(sizes.sort()).toEqual([1_000, 2_000])
  },
)
