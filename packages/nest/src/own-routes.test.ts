/** The exception filter that README.md shows, for `LlmError`s of the app's own controllers. */
import { LlmError } from '@modelmount/core'
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  Logger,
  type LoggerService,
  Module,
} from '@nestjs/common'
import { APP_FILTER, NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { Response } from 'express'
import request from 'supertest'
import { expect, onTestFinished, test } from 'vitest'

@Catch(LlmError)
class LlmErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger(LlmErrorFilter.name)

  catch({ status, headers, expose, message, stack }: LlmError, host: ArgumentsHost) {
    if (status >= 500) this.logger.error(message, stack)
    const response = host.switchToHttp().getResponse<Response>()
    for (const [name, value] of Object.entries(headers)) response.header(name, value)
    response.status(status).send({ statusCode: status, message: expose ? message : 'Internal server error' })
  }
}

@Controller()
class Stories {
  @Get('full')
  full() {
    throw new LlmError('overloaded', 'Full.', { retryAfterMs: 2_000 })
  }

  @Get('rejected')
  rejected() {
    throw new LlmError('invalid_output', 'The schema rejects the answer.', { text: 'A secret.' })
  }

  @Get('wrong')
  wrong() {
    throw new LlmError('invalid_request', 'schema: expected an object.', { setup: true })
  }
}

@Module({ controllers: [Stories], providers: [{ provide: APP_FILTER, useClass: LlmErrorFilter }] })
class AppModule {}

test.each([
  ['Express', undefined],
  ['Fastify', () => new FastifyAdapter()],
])(
  'on %s, the filter sends retry-after, hides mistakes of the app, and logs no answers',
  async (_name, adapter) => {
    const lines: string[] = []
    const write = (...line: unknown[]) => void lines.push(line.map(String).join(' '))
    const logger: LoggerService = { log: () => {}, warn: write, error: write }
    const options = { logger, abortOnError: false }
    const app = await (adapter
      ? NestFactory.create(AppModule, adapter(), options)
      : NestFactory.create(AppModule, options))
    onTestFinished(() => app.close())
    await app.listen(0, '127.0.0.1')
    const get = (path: string) => request(app.getHttpServer()).get(path)

    const [full, rejected, wrong] = [await get('/full'), await get('/rejected'), await get('/wrong')]

    expect([full.status, full.headers['retry-after']]).toEqual([503, '2'])
    expect(full.body).toEqual({ statusCode: 503, message: 'Full.' })
    expect(rejected.body).toEqual({ statusCode: 500, message: 'The schema rejects the answer.' })
    expect(wrong.body).toEqual({ statusCode: 500, message: 'Internal server error' })
    expect(lines).toHaveLength(3)
    expect(lines.join('\n')).toContain('schema: expected an object.')
    expect(lines.join('\n')).not.toContain('A secret.')
  },
)
