// Prints what the packed console serves.
import { createServer } from 'node:http'
import { LoginLinks } from '@modelmount/console'
import { consoleRouter } from '@modelmount/console/express'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import express from 'express'

const llm = await createLlm({ engine: scriptedEngine('Hello there.') })
const router = consoleRouter(llm, { loginLinks: new LoginLinks() })
const server = createServer(express().use('/console', router)).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const url = `http://127.0.0.1:${server.address().port}/console/`
const page = await (await fetch(url)).text()
const [, script] = /src="\.\/(assets\/[^"]+\.js)"/.exec(page)
const asset = await fetch(url + script)
const session = await (await fetch(`${url}session`)).json()
process.stdout.write(JSON.stringify({ encoding: asset.headers.get('content-encoding'), session }))
await asset.text()
server.close()
server.closeAllConnections()
await llm.close()
