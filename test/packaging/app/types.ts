/** Compiled, never run: the types that an app sees. */
import { createServer } from 'node:http'
import { createLlm, type Llm, LlmError, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { readEvents, type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import { modelPath } from '@modelmount/tiny-model'
import express from 'express'

const engine: ScriptedEngine = scriptedEngine(['Hello', ' there.', new LlmError('upstream', 'It broke.')])
const llm: Llm = await createLlm({ engine, models: [modelPath], local: { threads: 1 } })

const app = express()
app.use(llmRouter(llm))
app.use('/llm', llmRouter(llm, { bodyLimit: '8mb', unknownRoutes: 'pass', dialects: ['openai'] }))
createServer(toNodeHandler(routesFor(), llm))

const { text } = await llm.chat('Hi', { temperature: 0, maxTokens: 3 })
const length: number = text.length
for await (const piece of llm.chat([{ role: 'user', content: 'Hi' }], { stream: true })) piece.repeat(length)

const { body } = await fetch('http://127.0.0.1/v1/chat/completions')
if (body) for await (const { data } of readEvents(body)) JSON.parse(data)

// What the packages do not have is an error: their types are found, and are not `any`.
// @ts-expect-error
llmRouter(llm, { bodyLimit: true })
// @ts-expect-error
createLlm({ modles: [] })
// @ts-expect-error
const code: 'no_such_code' = new LlmError('upstream', 'It broke.').code
await llm.close()
engine.requests.at(0)?.model.concat(code)
