import type { Llm } from '@modelmount/core'
import { InjectLlm } from '@modelmount/nest'
import { Controller, Get, NotFoundException, Param, ParseIntPipe } from '@nestjs/common'

const users = [
  { id: 1, name: 'Ada' },
  { id: 2, name: 'Grace' },
]

@Controller('api/users')
export class UsersController {
  constructor(@InjectLlm() private readonly llm: Llm) {}

  @Get()
  findAll() {
    return users
  }

  @Get(':id/story')
  async tellStory(@Param('id', ParseIntPipe) id: number) {
    const user = users.find((one) => one.id === id)
    if (!user) throw new NotFoundException('no such user')
    const { text } = await this.llm.chat(`Tell me a short story about ${user.name}.`, { model: 'tiny' })
    return { user: user.name, story: text }
  }
}
