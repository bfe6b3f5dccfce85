import { LlmModule } from '@modelmount/nest'
import { Module } from '@nestjs/common'
import { UsersController } from './users.controller.ts'

@Module({
  imports: [LlmModule.forRoot({ path: 'llm' })],
  controllers: [UsersController],
})
export class AppModule {}
