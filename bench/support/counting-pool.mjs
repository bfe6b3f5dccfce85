// A pool of `pg` that counts what an app sends to PostgreSQL.
import pg from 'pg'

/**
 * @returns the pool, and `take()`, which returns the counts since its last call: `statements`, without those that begin
 *   and end transactions, `transactions`, which PostgreSQL counts (each statement outside of one is one, too), and
 *   `roundTrips`
 */
export function countingPool(connectionString) {
  const pool = new pg.Pool({ connectionString, max: 10 })
  pool.on('error', () => {})
  let counts = { statements: 0, transactions: 0, roundTrips: 0 }
  const connect = pool.connect.bind(pool)
  pool.connect = async () => {
    const client = await connect()
    let isInTransaction = false
    const query = (config) => {
      counts.roundTrips++
      if (config.text.startsWith('BEGIN')) {
        isInTransaction = true
        counts.transactions++
      } else if (config.text === 'COMMIT' || config.text === 'ROLLBACK') isInTransaction = false
      else {
        counts.statements++
        if (!isInTransaction) counts.transactions++
      }
      return client.query(config)
    }
    return {
      query,
      on: (...args) => client.on(...args),
      off: (...args) => client.off(...args),
      release: (error) => client.release(error),
    }
  }
  return {
    pool,
    take: () => {
      const taken = counts
      counts = { statements: 0, transactions: 0, roundTrips: 0 }
      return taken
    },
  }
}
