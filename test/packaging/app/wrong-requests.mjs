// Sends invalid requests to each API, and prints the error responses.
import { createLlm, routesFor } from '@modelmount/core'
import { toFetchHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'

const handle = toFetchHandler(routesFor(), await createLlm({ engine: scriptedEngine('Hello there.') }), {
  remoteAddress: () => '127.0.0.1',
})
const messages = [{ role: 'user', content: 'Hi' }]
const requests = [
  ['/v1/chat/completions', { messages, temperature: 'hot' }],
  ['/v1/chat/completions', { messages, tools: [{ type: 'function' }] }],
  ['/v1/embeddings', { input: [[-1]] }],
  ['/v1/messages', { messages, max_tokens: 0.5 }],
  ['/v1/messages', { messages: [{ role: 'nobody' }], max_tokens: 1 }],
  ['/api/chat', { messages: 'Hi' }],
  ['/api/generate', { prompt: 'Hi', options: { num_ctx: [] } }],
]
const responses = []
for (const [path, fields] of requests) {
  const body = JSON.stringify({ model: 'any', ...fields })
  const response = await handle(new Request(`http://127.0.0.1${path}`, { method: 'POST', body }))
  const { request_id: _, ...answer } = await response.json()
  responses.push([response.status, answer])
}
process.stdout.write(JSON.stringify(responses))
