/**
 * An app that asks a model in process. One route turns a text into an object. The other one lets the model call
 * functions of the app.
 */
import { fileURLToPath } from 'node:url'
import { createLlm } from '@modelmount/core'
import express from 'express'
import { z } from 'zod'

const ticket = z.object({
  topic: z.enum(['billing', 'delivery', 'other']),
  isUrgent: z.boolean(),
  summary: z.string().max(80),
})

/** @param findWeather returns the weather of a city, such as `{ sky: 'sunny', degrees: 21 }` */
export function createApp(llm, findWeather) {
  const app = express()
  app.use(express.json())

  app.post('/tickets', async (req, res) => {
    const { object } = await llm.chat(String(req.body?.message), {
      system: 'You sort messages of customers. Answer as JSON.',
      schema: ticket,
      signal: signalOf(res),
    })
    res.json(object)
  })

  app.post('/questions', async (req, res) => {
    const { text, steps } = await llm.chat(String(req.body?.question), {
      tools: {
        get_weather: {
          description: 'Get the current weather for a city',
          parameters: z.object({ city: z.string().max(40) }),
          execute: ({ city }) => findWeather(city),
        },
      },
      maxSteps: 4,
      temperature: 0,
      signal: signalOf(res),
    })
    res.json({ answer: text, calls: steps.flatMap(({ toolCalls }) => toolCalls) })
  })

  return app
}

/** A client that disconnects cancels its answer. */
function signalOf(res) {
  const left = new AbortController()
  res.on('close', () => left.abort())
  return left.signal
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const findWeather = async (city) => ({ city, sky: 'sunny', degrees: 21 })
  createApp(await createLlm(), findWeather).listen(3000, '127.0.0.1')
}
