/**
 * Starts PostgreSQL for a test file. Stopping it fails if the data folder contains text of a prompt or an answer.
 */
import * as embedded from './embedded-postgres.mjs'
import { expectNoLeaks } from './leaks.ts'

export { hasPostgres, type RunningPostgres } from './embedded-postgres.mjs'

export const startPostgres = (): Promise<embedded.RunningPostgres> =>
  embedded.startPostgres({ onStop: expectNoLeaks })
