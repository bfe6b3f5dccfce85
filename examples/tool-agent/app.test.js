/** Asks the built-in model and scripted models about a real PostgreSQL. */
import { once } from 'node:events'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { Client } from 'pg'
import request from 'supertest'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createApp } from './app.js'
import { startPostgres } from './postgres.js'
import { Queries } from './queries.js'

let postgres
let queries

beforeAll(async () => {
  postgres = await startPostgres()
  queries = new Queries(postgres.agentUrl)
}, 60_000)

afterAll(async () => {
  await queries.close()
  await postgres.stop()
})

async function start(engine) {
  const llm = await createLlm(engine && { engine })
  onTestFinished(() => llm.close())
  return createApp(llm, queries)
}

/** Calls the tool `run_sql` with each statement, one after the other, and then repeats the last result. */
const sqlAgent = (...statements) =>
  scriptedEngine(({ input: { messages } }) => {
    const results = messages.filter(({ role }) => role === 'tool')
    const sql = statements[results.length]
    return sql ? [{ call: 'run_sql', arguments: { sql } }] : results.at(-1).content[0].content[0].text
  })

const ask = (app, question) => request(app).post('/questions').send({ question })

test('the built-in model asks for a price, and answers with it', async () => {
  const { body } = await ask(await start(), 'Get the price of the lamp.').expect(200)

  expect(body.calls).toEqual([{ name: 'get_price', product: 'lamp' }])
  expect(body.answer).toContain('40')
}, 30_000)

test('the model writes SQL, reads an error, and corrects its statement', async () => {
  const engine = sqlAgent('SELECT nme FROM products', 'SELECT name FROM products WHERE stock = 0')

  const { body } = await ask(await start(engine), 'What is sold out?').expect(200)

  expect(body.answer).toBe('[{"name":"desk"}]')
  expect(JSON.stringify(engine.requests[1].input.messages)).toContain('column \\"nme\\" does not exist')
})

describe('a statement of the model', () => {
  test.each([
    ["UPDATE products SET price = 0 WHERE name = 'lamp'", 'syntax error'],
    ['SELECT 1; DROP TABLE products', 'multiple commands'],
    ['WITH gone AS (DELETE FROM products RETURNING 1) SELECT * FROM gone', 'must not contain data-modifying'],
    ['SELECT password_hash FROM customers', 'permission denied'],
    ["SELECT pg_read_file('/etc/passwd')", 'permission denied'],
    ['SELECT pg_sleep(60)', 'statement timeout'],
    ['SELECT count(*) FROM generate_series(1, 1000000000000)', 'temp_file_limit'],
  ])('%s is refused: %s', async (sql, message) => {
    await expect(queries.select(sql)).rejects.toThrow(message)
    await expect(queries.select("SELECT price FROM products WHERE name = 'lamp'")).resolves.toBe(
      '[{"price":"40.00"}]',
    )
  })

  test('cannot change the settings of later ones', async () => {
    await queries.select(
      "SELECT set_config('statement_timeout', '0', false), set_config('role', 'agent', false)",
    )

    expect(await queries.select("SELECT current_setting('statement_timeout') AS timeout")).toBe(
      '[{"timeout":"2s"}]',
    )
  })

  test('returns at most 50 rows and 4,000 characters', async () => {
    const rows = await queries.select('SELECT * FROM generate_series(1, 1000)')
    const long = await queries.select("SELECT repeat('x', 100000) AS text")

    expect(rows).toMatch(/"generate_series":50\}\] \(and more rows\)$/)
    expect(long).toHaveLength(4_000 + '… (more was cut off)'.length)
  })
})

test('the role of the model cannot write, whatever the transaction is', async () => {
  const client = new Client(postgres.agentUrl)
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('SET default_transaction_read_only = off')

  await expect(client.query('DELETE FROM products')).rejects.toThrow('permission denied')
})

test.each([{}, { question: '' }, { question: 'x'.repeat(1_001) }])(
  'a wrong question is 400',
  async (body) => {
    await request(await start(sqlAgent()))
      .post('/questions')
      .send(body)
      .expect(400)
  },
)

test('the model stops when a client disconnects', async () => {
  const engine = scriptedEngine('word '.repeat(10_000), { delayMs: 2 })
  const server = (await start(engine)).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const client = new AbortController()
  const answer = fetch(`http://127.0.0.1:${server.address().port}/questions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ question: 'What is sold out?' }),
    signal: client.signal,
  })
  await expect.poll(() => engine.running).toBe(1)

  client.abort()

  await expect(answer).rejects.toThrow('aborted')
  await expect.poll(() => engine.running).toBe(0)
})
