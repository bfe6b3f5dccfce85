import { LlmModule } from '@modelmount/nest'
import { Module } from '@nestjs/common'
import { UsersController } from './users.controller.ts'

@Module({
  // `drain` lets running answers end when the app is closed.
  imports: [LlmModule.forRoot({ path: 'llm', shutdown: { drain: '10s' } })],
  controllers: [UsersController],
})
export class AppModule {}
