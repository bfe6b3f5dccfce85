// Uses all entry points like an app. Prints the results as one line of JSON.
const { existsSync } = require('node:fs')
const { createServer } = require('node:http')

module.exports = async (modules) => {
  const { core, adapter, database, engine, http, limits, models, testing } = modules
  const { express, tinyModel, framework } = modules
  const { createLlm, routesFor, LlmError } = core
  const scripted = testing.scriptedEngine((request) =>
    request.model === 'busy' ? new LlmError('overloaded', 'Too many calls.') : 'Hello there.',
  )
  const llm = await createLlm({ engine: scripted })

  const app = framework()
  app.use(express.llmRouter(llm))
  app.get('/mine', (_req, res) => res.json('my own route'))
  const limiter = await limits.createRateLimiter({ limits: { requestsPerMinute: 1 } })
  app.get('/limited', express.rateLimit(limiter), (_req, res) => res.json('my own route'))
  const inExpress = await serve(app, async (url) => {
    const streamed = []
    const { body } = await ask(url, { model: 'any', stream: true })
    for await (const { data } of testing.readEvents(body)) {
      if (data !== '[DONE]') streamed.push(JSON.parse(data).choices[0].delta.content)
    }
    return {
      whole: await contentOf(await ask(url, { model: 'any' })),
      streamed: streamed.filter(Boolean),
      busyStatus: (await ask(url, { model: 'busy' })).status,
      own: await (await fetch(`${url}/mine`)).json(),
      limited: [(await fetch(`${url}/limited`)).status, (await fetch(`${url}/limited`)).status],
      unknownStatus: (await fetch(`${url}/nowhere`)).status,
    }
  })

  const inNode = await serve(http.toNodeHandler(routesFor(), llm), async (url) => ({
    whole: await contentOf(await ask(url, { model: 'any' })),
  }))

  await llm.close()
  const builtInModel = existsSync(tinyModel.modelPath)
  const oneErrorClass = [adapter, engine, limits].every((entryPoint) => entryPoint.LlmError === LlmError)
  const noDatabase = await database.checkDatabase('none.db').catch(({ message }) => message)
  const from = models.parseModelfile('FROM tiny').from
  process.stdout.write(
    JSON.stringify({
      node: process.version,
      inExpress,
      inNode,
      builtInModel,
      oneErrorClass,
      noDatabase,
      from,
    }),
  )
}

const ask = (url, fields) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], ...fields }),
  })

const contentOf = async (response) => (await response.json()).choices[0].message.content

async function serve(handler, use) {
  const server = createServer(handler)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    return await use(`http://127.0.0.1:${server.address().port}`)
  } finally {
    server.close()
    server.closeAllConnections()
  }
}
