import type { Llm } from '@modelmount/core'
import { InjectLlm, LlmModule } from '@modelmount/nest'
import { Controller, Get, Module } from '@nestjs/common'

@Controller('stories')
export class StoriesController {
  constructor(@InjectLlm() private readonly llm: Llm) {}

  @Get()
  async tell() {
    const { text } = await this.llm.chat('Tell me a short story.', { model: 'tiny' })
    return { text }
  }
}

@Module({ imports: [LlmModule.forRoot({ path: 'llm' })], controllers: [StoriesController] })
export class AppModule {}
