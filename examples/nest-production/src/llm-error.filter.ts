import { LlmError } from '@modelmount/core'
import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common'
import type { Response } from 'express'

/** Answers errors of the model on the routes of the app, with their status and `retry-after`. */
@Catch(LlmError)
export class LlmErrorFilter implements ExceptionFilter {
  readonly #logger = new Logger(LlmErrorFilter.name)

  catch({ status, headers, expose, message, stack }: LlmError, host: ArgumentsHost): void {
    if (status >= 500) this.#logger.error(message, stack)
    const response = host.switchToHttp().getResponse<Response>()
    for (const [name, value] of Object.entries(headers)) response.header(name, value)
    response.status(status).send({ statusCode: status, message: expose ? message : 'Internal server error' })
  }
}
