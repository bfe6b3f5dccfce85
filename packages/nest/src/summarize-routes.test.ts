import { scriptedEngine } from '@modelmount/core/testing'
import { ConsoleLogger, Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { LlmModule, summarizeRoutes } from './index.ts'

@Controller('users')
class UsersController {
  @Get()
  list(): readonly string[] {
    return []
  }
}

/** Records what Nest's own logger would print. */
class RecordingLogger extends ConsoleLogger {
  readonly lines: string[] = []
  override printMessages(messages: unknown[], context = ''): void {
    this.lines.push(...messages.map((message) => `[${context}] ${message}`))
  }
}

test('the start-up log has one line for our routes, and all lines for those of the app', async () => {
  const llm = LlmModule.forRoot({ engine: scriptedEngine('Hello.'), models: emptyFolder(), path: 'llm' })
  @Module({ imports: [llm], controllers: [UsersController] })
  class AppModule {}
  const logger = new RecordingLogger()

  const app = await NestFactory.create(AppModule, { logger: summarizeRoutes(logger) })
  onTestFinished(() => app.close())
  await app.init()

  expect(logger.lines.filter((line) => /Resolver|Explorer/.test(line))).toEqual([
    '[RoutesResolver] UsersController {/users}:',
    '[RouterExplorer] Mapped {/users, GET} route',
    '[RoutesResolver] LlmController (ollama, openai, anthropic, modelmount) {/llm}:',
  ])
  expect(logger.lines).toContainEqual(expect.stringContaining('Nest application successfully started'))
})

test('an error of the app reaches the logger', () => {
  const logger = new RecordingLogger()

  summarizeRoutes(logger).error('Broken.', undefined, 'Users')

  expect(logger.lines).toEqual(['[Users] Broken.'])
})
