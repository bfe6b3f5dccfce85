/** Node's own test runner, without other packages. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { createApp } from '../app.js'

describe('the route of stories', () => {
  const engine = scriptedEngine('Ada went home.')
  let llm
  let server
  let url

  before(async () => {
    llm = await createLlm({ engine })
    server = createApp(llm).listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${server.address().port}`
  })

  after(async () => {
    await llm.close()
    server.close()
    server.closeAllConnections()
  })

  test('returns the answer of the model', async () => {
    const response = await fetch(`${url}/stories/Ada`)

    assert.equal(response.status, 200)
    assert.deepEqual(await response.json(), { story: 'Ada went home.' })
    assert.equal(engine.requests.length, 1)
  })

  test('leaves other paths to the app', async () => {
    const response = await fetch(`${url}/nowhere`)

    assert.equal(response.status, 404)
  })
})
