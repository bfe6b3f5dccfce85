import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { Controller, Get, Inject, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { LlmHealthIndicator, LlmModule } from './index.ts'

@Controller('health')
class HealthController {
  readonly #health: HealthCheckService
  readonly #llm: LlmHealthIndicator

  constructor(
    @Inject(HealthCheckService) health: HealthCheckService,
    @Inject(LlmHealthIndicator) llm: LlmHealthIndicator,
  ) {
    this.#health = health
    this.#llm = llm
  }

  @Get()
  @HealthCheck()
  check() {
    return this.#health.check([() => this.#llm.isHealthy('llm')])
  }
}

test('terminus answers 200 while calls can be answered, and 503 with the failed checks', async () => {
  const llm = await createLlm({ engine: scriptedEngine('Hello.'), models: emptyFolder() })
  @Module({
    imports: [LlmModule.forRoot({ llm }), TerminusModule.forRoot({ logger: false })],
    controllers: [HealthController],
  })
  class AppModule {}
  const app = await NestFactory.create(AppModule, { logger: false })
  onTestFinished(() => app.close())
  await app.listen(0, '127.0.0.1')
  const url = `${await app.getUrl()}/health`

  const healthy = await fetch(url)
  await llm.close()
  const closed = await fetch(url)

  expect([healthy.status, await healthy.json()]).toMatchObject([200, { info: { llm: { status: 'up' } } }])
  expect([closed.status, await closed.json()]).toMatchObject([
    503,
    { error: { llm: { status: 'down', failed: ['app'] } } },
  ])
})
