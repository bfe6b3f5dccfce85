import type { Llm } from '@modelmount/core'
import { InjectLlm } from '@modelmount/nest'
import { Controller, Get, NotFoundException, Param, ParseIntPipe, Res } from '@nestjs/common'
import type { Response } from 'express'

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
  async tellStory(
    @Param('id', ParseIntPipe) id: number,
    @Res({ passthrough: true }) response: Response,
  ): Promise<object> {
    const user = users.find((one) => one.id === id)
    if (!user) throw new NotFoundException('no such user')
    const prompt = `Tell me a short story about ${user.name}.`
    const { text } = await this.llm.chat(prompt, { model: 'tiny', signal: signalOf(response) })
    return { user: user.name, story: text }
  }
}

/** Aborts when the client disconnects, so that the model stops. */
function signalOf(response: Response): AbortSignal {
  const disconnected = new AbortController()
  response.on('close', () => disconnected.abort())
  return disconnected.signal
}
