/** Answers questions about a shop. The model calls tools that read the database. */
import { LlmError } from '@modelmount/core'
import express from 'express'
import { z } from 'zod'

const body = z.object({ question: z.string().min(1).max(1_000) })

const system = `You answer questions about the products of a shop. Table: products(name text, price numeric, stock integer).`

/** @param queries the statements that the tools run */
export function createApp(llm, queries) {
  const app = express()

  const tools = {
    get_price: {
      description: 'Get the price of a product',
      parameters: z.object({ product: z.string().max(40) }),
      execute: async ({ product }) => (await queries.findPrice(product)) ?? 'There is no such product.',
    },
    run_sql: {
      description: 'Run a SELECT statement in PostgreSQL',
      parameters: z.object({ sql: z.string().max(1_000) }),
      execute: ({ sql }) => queries.select(sql), // The model reads an error, and may correct its statement.
    },
  }

  app.post('/questions', express.json({ limit: '16kb' }), async (req, res) => {
    const { success, data, error } = body.safeParse(req.body)
    if (!success) return res.status(400).json({ error: z.prettifyError(error) })
    const { text, steps } = await llm.chat(data.question, {
      model: 'tiny',
      system,
      tools,
      maxSteps: 6, // answers of the model, each of which may call tools
      maxTokens: 500, // of each answer
      temperature: 0,
      signal: signalOf(res),
    })
    const calls = steps.flatMap(({ toolCalls }) => toolCalls)
    res.json({ answer: text, calls: calls.map(({ name, arguments: given }) => ({ name, ...given })) })
  })

  app.use((error, _req, res, next) => {
    if (res.closed) return // The client has disconnected.
    if (!LlmError.is(error)) return next(error)
    res.status(error.statusCode).set(error.headers).json({ error: error.message })
  })

  return app
}

/** Aborts when the client disconnects, so that the model stops, and calls no further tools. */
function signalOf(res) {
  const disconnected = new AbortController()
  res.on('close', () => disconnected.abort())
  return disconnected.signal
}
