// Serves a chat in a Nest app behind a guard. Prints the results as one line of JSON. The caller imports or
// requires the packages.
module.exports = async ({ adapter, testing, common, core }) => {
  const engine = testing.scriptedEngine('Hello there.')
  const guard = {
    canActivate(context) {
      if (context.switchToHttp().getRequest().headers.authorization) return true
      throw new common.UnauthorizedException('Say who you are.')
    },
  }
  class AppModule {}
  common.Module({
    imports: [adapter.LlmModule.forRoot({ engine, path: 'llm' })],
    providers: [{ provide: core.APP_GUARD, useValue: guard }],
  })(AppModule)

  const app = await core.NestFactory.create(AppModule, { bodyParser: false, logger: false })
  await app.listen(0, '127.0.0.1')
  const url = `${await app.getUrl()}/llm/v1/chat/completions`
  const ask = (fields, headers = { authorization: 'Bearer me' }) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'Hi' }], ...fields }),
    })

  const whole = await ask({})
  const streamed = []
  for await (const { data } of testing.readEvents((await ask({ stream: true })).body)) {
    if (data !== '[DONE]') streamed.push(JSON.parse(data).choices[0].delta.content)
  }
  const refused = await ask({}, {})
  const wrongMethod = await fetch(url, { headers: { authorization: 'Bearer me' } })

  const outcome = {
    status: whole.status,
    whole: (await whole.json()).choices[0].message.content,
    streamed: streamed.filter(Boolean),
    refused: [refused.status, (await refused.json()).error.message],
    wrongMethod: wrongMethod.status,
    injected: app.get(adapter.LLM, { strict: false }).loaded(),
  }
  await app.close()
  process.stdout.write(JSON.stringify(outcome))
}
