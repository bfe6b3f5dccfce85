// An app with keys in SQLite asks the built-in model over the three APIs, and shuts down. Prints what it got.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLlm, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'

const database = `smoke-${process.versions.node}.db`
const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 1 } }
// Of its own, so that no model process of another Node answers.
const runtimeDir = mkdtempSync(join(tmpdir(), 'smoke-'))
const llm = await createLlm({ models: [], auth: 'keys', database, prices, local: { runtimeDir } })
const { secret: key } = await llm.keys.create({ name: 'smoke' })
const server = createServer(toNodeHandler(routesFor(), llm)).listen(0, '127.0.0.1')
await once(server, 'listening')

async function ask(path, body, headers) {
  const response = await fetch(`http://127.0.0.1:${server.address().port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'Hello' }], ...body }),
  })
  return response.json()
}
const bearer = { authorization: `Bearer ${key}` }
const openai = await ask('/v1/chat/completions', { temperature: 0 }, bearer)
const anthropic = await ask('/v1/messages', { max_tokens: 50, temperature: 0 }, { 'x-api-key': key })
const ollama = await ask('/api/chat', { stream: false, options: { temperature: 0 } }, bearer)
const refused = await ask('/v1/chat/completions', {}, { authorization: 'Bearer wrong' })

server.close()
server.closeAllConnections()
await llm.close({ drain: '5s' })

const reopened = await createLlm({ models: [], auth: 'keys', database, prices })
const [stored] = await reopened.keys.list()
await reopened.close()
for (const suffix of ['', '-wal', '-shm']) rmSync(database + suffix, { force: true })
rmSync(runtimeDir, { recursive: true, force: true })

process.stdout.write(
  JSON.stringify({
    node: process.version,
    openai: openai.choices?.[0].message.content ?? openai,
    anthropic: anthropic.content?.[0].text ?? anthropic,
    ollama: ollama.message?.content ?? ollama,
    refused: refused.error.code,
    stored: stored.name,
  }),
)
