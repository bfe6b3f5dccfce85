/** A server whose answers depend on the name of the model, and whose streams have a heartbeat before each chunk. */
import { createLlm, LlmError, type LlmErrorCode } from '@modelmount/core'
import { type GenerateRequest, toTemplateMessages } from '@modelmount/core/engine'
import { type ScriptedAnswer, scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express, { type RequestHandler } from 'express'
import { listen } from '../support/listen.ts'

export interface ScriptedServer {
  readonly url: string
  close(): Promise<void>
}

export async function serveScripts(models: string): Promise<ScriptedServer> {
  const llm = await createLlm({ engine: scriptedEngine(answerTo), models })
  const server = await listen(express().use(withHeartbeats, llmRouter(llm)))
  return {
    url: server.url,
    close: async () => {
      await server.close()
      await llm.close()
    },
  }
}

const answers: Readonly<Record<string, ScriptedAnswer>> = {
  nothing: [],
  json: ['{"city":', '"Paris"}'],
  thinks: [{ reasoning: 'Hm.' }, 'Hello there.'],
  'bare-call': [{ call: 'now' }],
}

function answerTo({ model, input }: GenerateRequest): ScriptedAnswer {
  if (model.startsWith('error-'))
    return new LlmError(model.slice('error-'.length) as LlmErrorCode, 'What to do next.', { retryAfterMs: 5 })
  if (model !== 'calls') return answers[model] ?? 'Hello there.'
  return toTemplateMessages(input).at(-1)?.role === 'tool'
    ? 'It rains.'
    : [{ call: 'weather', arguments: ['{"city":', '"Paris"}'] }]
}

export const withHeartbeats: RequestHandler = ({ path }, res, next) => {
  const heartbeat = path === '/v1/messages' ? 'event: ping\ndata: {"type":"ping"}\n\n' : ': keepalive\n\n'
  const write = res.write.bind(res) as (chunk: unknown, ...others: unknown[]) => boolean
  const isStream = () => String(res.getHeader('content-type')).startsWith('text/event-stream')
  res.write = (chunk: unknown, ...others: unknown[]) => {
    if (isStream()) write(heartbeat)
    return write(chunk, ...others)
  }
  next()
}
