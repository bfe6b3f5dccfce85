import type { Llm } from '@modelmount/core'
import { InjectLlm } from '@modelmount/nest'
import { BadRequestException, Body, Controller, Post, Req, Res } from '@nestjs/common'
import type { Response } from 'express'
import { z } from 'zod'
import type { RequestWithUser } from './user.guard.js'

const body = z.object({ text: z.string().min(1).max(10_000) })
const summary = z.object({ title: z.string().max(60), isPositive: z.boolean() })

@Controller('summaries')
export class SummariesController {
  constructor(@InjectLlm() private readonly llm: Llm) {}

  /** The call counts towards the limits of the user, like the calls of the routes of models. */
  @Post()
  async summarize(
    @Body() given: unknown,
    @Req() { user }: RequestWithUser,
    @Res({ passthrough: true }) response: Response,
  ): Promise<z.infer<typeof summary>> {
    const { success, data, error } = body.safeParse(given)
    if (!success) throw new BadRequestException(z.prettifyError(error))
    const { object } = await this.llm.chat(data.text, {
      model: 'tiny',
      system: 'Summarize the text as JSON.',
      schema: summary,
      ...(user && { caller: { id: user.id, tier: user.tier } }),
      signal: signalOf(response),
    })
    return object
  }
}

/** Aborts when the client disconnects, so that the model stops. */
function signalOf(response: Response): AbortSignal {
  const disconnected = new AbortController()
  response.on('close', () => disconnected.abort())
  return disconnected.signal
}
