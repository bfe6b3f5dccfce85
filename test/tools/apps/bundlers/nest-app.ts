import 'reflect-metadata'
import type { Llm } from '@modelmount/core'
import { InjectLlm, LlmModule } from '@modelmount/nest'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'

@Controller('story')
class StoryController {
  readonly #llm: Llm

  constructor(@InjectLlm() llm: Llm) {
    this.#llm = llm
  }

  @Get()
  async tell(): Promise<string> {
    const { text } = await this.#llm.chat('Hello', { model: 'tiny', temperature: 0 })
    return text
  }
}

@Module({
  imports: [LlmModule.forRoot({ path: 'llm', shutdown: { drain: '10s' } })],
  controllers: [StoryController],
})
class AppModule {}

async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule, { logger: false })
  app.enableShutdownHooks()
  await app.listen(0, '127.0.0.1')
  process.stdout.write(`${await app.getUrl()}\n`)
}

void main()
