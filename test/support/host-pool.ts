import pg from 'pg'
import { onTestFinished } from 'vitest'

/** A pool as a host app opens it. It ends with the test. */
export function hostPool(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool(config)
  // `end()` resolves before the sockets are closed. If PostgreSQL stops in between, the pool emits an error.
  pool.on('error', () => {})
  onTestFinished(() => pool.end())
  return pool
}
