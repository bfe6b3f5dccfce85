/**
 * Starts PostgreSQL for tests. Stopping it fails if the data folder contains text of a prompt or an answer.
 */
import { statfsSync } from 'node:fs'
import * as embedded from './embedded-postgres.mjs'
import { expectNoLeaks } from './leaks.ts'

export { hasPostgres, type RunningPostgres } from './embedded-postgres.mjs'

export const startPostgres = (): Promise<embedded.RunningPostgres> =>
  embedded.startPostgres({
    ...(hasRamDisk() && { dataParent: ramDisk }),
    onStop: (data) => expectNoLeaks(data),
  })

const ramDisk = '/dev/shm'

/** A database has 300 files, which a RAM disk creates in half the time. In containers, its size is often 64 MB. */
function hasRamDisk(): boolean {
  try {
    const { bavail, bsize } = statfsSync(ramDisk)
    return bavail * bsize >= 4 * 2 ** 30
  } catch {
    return false
  }
}
