/** Type test of a Nest app. This file is compiled but never run. */
import { createLlm, type Llm } from '@modelmount/core'
import { InjectLlm, LLM, LlmModule } from '@modelmount/nest'
import { Controller, Get, Injectable, Module } from '@nestjs/common'

@Injectable()
class Config {
  readonly models = 'no-such-folder'
}

@Controller()
class Stories {
  readonly llm: Llm

  constructor(@InjectLlm() llm: Llm) {
    this.llm = llm
  }

  @Get()
  async story(): Promise<string> {
    return (await this.llm.chat('Hi')).text
  }
}

@Module({
  imports: [
    LlmModule.forRoot(),
    LlmModule.forRoot({ models: [], path: 'llm', unknownRoutes: 'pass', bodyLimit: '8mb', isGlobal: true }),
    LlmModule.forRoot({
      auth: 'host',
      authenticate: ({ user }) => (user ? { id: String(user) } : undefined),
    }),
    LlmModule.forRootAsync({
      dialects: ['openai'],
      inject: [Config],
      useFactory: ({ models }: Config) => ({ models }),
    }),
    LlmModule.forRootAsync({ useFactory: async () => ({ llm: await createLlm() }) }),
  ],
  controllers: [Stories],
  providers: [Config, { provide: 'mine', inject: [LLM], useFactory: (llm: Llm) => llm.loaded() }],
})
export class AppModule {}

// @ts-expect-error
LlmModule.forRoot({ bodyLimit: true })
// @ts-expect-error
LlmModule.forRootAsync({ useFactory: () => ({ models: 1 }) })
