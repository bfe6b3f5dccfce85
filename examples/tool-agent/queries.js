/** Runs statements that a model has written, with limits that hold whatever it writes. */
import { Pool } from 'pg'

const maxRows = 50
const maxCharacters = 4_000

export class Queries {
  #pool

  /** @param url of the database, with the role `agent` of schema.sql */
  constructor(url) {
    this.#pool = new Pool({ connectionString: url, max: 5, connectionTimeoutMillis: 5_000 })
    this.#pool.on('error', () => {}) // A lost connection. The next statement opens another one.
  }

  /** @returns the price of a product, or undefined */
  async findPrice(product) {
    const { rows } = await this.#pool.query('SELECT name, price FROM products WHERE name = $1', [product])
    return rows[0]
  }

  /**
   * Runs one SELECT statement. The role may only read, so the transaction is the second barrier and not the only one.
   * @returns at most 50 rows, as JSON of at most 4,000 characters
   */
  async select(sql) {
    const client = await this.#pool.connect()
    let failure
    try {
      await client.query('BEGIN READ ONLY')
      // The extended protocol takes a single statement, and a cursor takes nothing but a query.
      await client.query({ text: `DECLARE answer NO SCROLL CURSOR FOR ${sql}`, queryMode: 'extended' })
      const { rows } = await client.query(`FETCH ${maxRows + 1} FROM answer`)
      return shorten(rows)
    } catch (error) {
      // The model reads messages of the database about its statement. It learns nothing about a lost connection.
      if (!error.code?.match(/^[0-9A-Z]{5}$/)) failure = error
      throw failure ? new Error('The database does not answer.') : new Error(error.message)
    } finally {
      // Also undoes `set_config` of the statement.
      if (!failure)
        failure = await client.query('ROLLBACK').then(
          () => undefined,
          (error) => error,
        )
      client.release(failure)
    }
  }

  close() {
    return this.#pool.end()
  }
}

function shorten(rows) {
  const text = JSON.stringify(rows.slice(0, maxRows))
  if (text.length > maxCharacters) return `${text.slice(0, maxCharacters)}… (more was cut off)`
  return rows.length > maxRows ? `${text} (and more rows)` : text
}
