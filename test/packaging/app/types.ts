/** Type test of an app. This file is compiled but never run. */
import { createServer } from 'node:http'
import { createLlm, jsonSchema, type Llm, LlmError, routesFor } from '@modelmount/core'
import { type Mount, prepareMount } from '@modelmount/core/adapter'
import { backupDatabase, checkDatabase, type DatabaseCheck } from '@modelmount/core/database'
import { type GenerateEvent, type TokenUsage, uncached } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import type { CallerLimits } from '@modelmount/core/limits'
import { type ModelDetails, parseModelfile } from '@modelmount/core/models'
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

const mount: Mount = prepareMount(llm, {})
const limits: CallerLimits = llm.limits
const details: ModelDetails = await llm.models.details('tiny')
const usage: TokenUsage = { inputTokens: 1, outputTokens: 0, reusedTokens: 0, ...uncached }
const events: GenerateEvent[] = []
await backupDatabase('data/modelmount.db', 'backup.db', { overwrite: true })
const check: DatabaseCheck = await checkDatabase('backup.db')
export const parts = { mount, limits, details, usage, check, events, modelfile: parseModelfile('FROM tiny') }

const { text } = await llm.chat('Hi', { temperature: 0, maxTokens: 3 })
const length: number = text.length
for await (const piece of llm.chat([{ role: 'user', content: 'Hi' }], { stream: true })) piece.repeat(length)

const schema = jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } })
const { object } = await llm.chat('Hi', { schema })
object.city.repeat(length)

const { body } = await fetch('http://127.0.0.1/v1/chat/completions')
if (body) for await (const { data } of readEvents(body)) JSON.parse(data)

// Wrong names must be compile errors. If the types were missing, they would be `any` and allow all names.
// @ts-expect-error
llmRouter(llm, { bodyLimit: true })
// @ts-expect-error
createLlm({ modles: [] })
// @ts-expect-error
object.town
// @ts-expect-error
const code: 'no_such_code' = new LlmError('upstream', 'It broke.').code
await llm.close()
engine.requests.at(0)?.model.concat(code)
