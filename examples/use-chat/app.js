/** A chat page. The model runs in the process of the app, and the page uses the hook `useChat` of the AI SDK. */
import { fileURLToPath } from 'node:url'
import { createModelmount } from '@modelmount/ai-sdk'
import { convertToModelMessages, safeValidateUIMessages, stepCountIs, streamText, tool } from 'ai'
import express from 'express'
import { z } from 'zod'

const temperatures = { Paris: 18, Rome: 26, Oslo: 7 }

const tools = {
  get_weather: tool({
    description: 'Get the current weather for a city',
    inputSchema: z.object({ city: z.string().max(40).describe('The city') }),
    execute: async ({ city }) => ({ city, temperature: temperatures[city] ?? 'unknown' }),
  }),
}

export function createApp(llm) {
  const app = express()

  app.post('/api/chat', express.json({ limit: '1mb' }), async (req, res) => {
    const validated = await safeValidateUIMessages({ messages: req.body?.messages, tools })
    if (!validated.success) return res.status(400).json({ error: validated.error.message })
    // In your app, `id` is the user of the request.
    const modelmount = createModelmount(llm, { caller: { id: 'visitor' } })
    const left = new AbortController()
    res.on('close', () => left.abort())
    const result = streamText({
      model: modelmount('tiny'),
      messages: await convertToModelMessages(validated.data),
      tools,
      stopWhen: stepCountIs(3),
      abortSignal: left.signal,
    })
    result.pipeUIMessageStreamToResponse(res)
  })

  app.use(express.static(fileURLToPath(new URL('public', import.meta.url))))
  return app
}
