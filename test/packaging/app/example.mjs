// Usage: node example.mjs ./app.js. The test copies the app of examples/express beside this file.
import { createServer } from 'node:http'
import { createLlm } from '@modelmount/core'

const { createApp } = await import(process.argv[2])
const llm = await createLlm()
const server = createServer(createApp(llm))
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const url = `http://127.0.0.1:${server.address().port}`

const users = await (await fetch(`${url}/api/users`)).json()
const response = await fetch(`${url}/llm/v1/chat/completions`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'tiny', temperature: 0, messages: [{ role: 'user', content: 'Hello' }] }),
})
const { choices } = await response.json()

server.close()
server.closeAllConnections()
await llm.close()
process.stdout.write(JSON.stringify({ node: process.version, users, text: choices[0].message.content }))
