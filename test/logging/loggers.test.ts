/** The loggers of apps, as they are published, with a real model. */
import { Writable } from 'node:stream'
import { createLlm, type LlmOptions, messageFirst } from '@modelmount/core'
import { ConsoleLogger, Logger as NestLogger } from '@nestjs/common'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import winston from 'winston'
import { emptyFolder } from '../support/empty-folder.ts'
import { serve } from '../support/served.ts'

type Line = Readonly<Record<string, unknown>>

/** Collects lines of JSON. */
function collectLines() {
  const written: string[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      written.push(String(chunk))
      done()
    },
  })
  return {
    stream,
    lines: (): readonly Line[] =>
      written
        .join('')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
  }
}

const loggers: Readonly<
  Record<
    string,
    () => { readonly logger: LlmOptions['logger']; lines(): readonly Line[]; readonly message: string }
  >
> = {
  pino: () => {
    const { stream, lines } = collectLines()
    return { logger: pino({ level: 'debug' }, stream), lines, message: 'msg' }
  },
  winston: () => {
    const { stream, lines } = collectLines()
    const transports = [new winston.transports.Stream({ stream })]
    return {
      logger: messageFirst(winston.createLogger({ format: winston.format.json(), transports })),
      lines,
      message: 'message',
    }
  },
  "Nest's logger": () => {
    const written: string[] = []
    for (const stream of [process.stdout, process.stderr])
      vi.spyOn(stream, 'write').mockImplementation((chunk) => {
        written.push(String(chunk))
        return true
      })
    onTestFinished(() => void vi.restoreAllMocks())
    NestLogger.overrideLogger(new ConsoleLogger({ json: true, flattenParams: true }))
    onTestFinished(() => NestLogger.overrideLogger(true))
    return {
      logger: messageFirst(new NestLogger('Modelmount')),
      lines: () => written.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line)),
      message: 'message',
    }
  },
}

test.each(Object.keys(loggers))('%s gets lines about the model, the calls and the errors', async (name) => {
  const { logger, lines, message } = loggers[name]?.() ?? expect.fail()
  const { llm, post } = await serve({ models: emptyFolder(), logger, accessLog: true })

  const response = await post('/v1/chat/completions', {
    model: 'tiny',
    messages: [{ role: 'user', content: 'Hello' }],
  })
  await response.text()
  const [model] = llm.loaded()
  process.kill(model?.processId as number, 'SIGKILL')
  await expect.poll(() => lines().map((line) => line[message])).toContain('model process crashed')

  const [loaded, ended, crashed] = lines()
  expect(loaded).toMatchObject({
    [message]: 'model loaded',
    ...{ model: 'tiny:latest', processId: model?.processId, gpuLayers: 0 },
    contextSize: expect.any(Number),
    loadMs: expect.any(Number),
  })
  expect(ended).toMatchObject({
    [message]: 'call ended',
    requestId: response.headers.get('x-request-id'),
    ...{ model: 'tiny:latest', route: '/v1/chat/completions', status: 'ended' },
    outputTokens: expect.any(Number),
  })
  expect(crashed).toMatchObject({ model: 'tiny:latest', processId: model?.processId })
})

test.each(Object.keys(loggers))('%s gets an error with its stack and its cause', async (name) => {
  const { logger, lines } = loggers[name]?.() ?? expect.fail()
  const before = (): never => {
    throw new RangeError('a bug')
  }
  const { post } = await serve({ models: emptyFolder(), logger, interceptors: [{ before }] })

  await post('/v1/embeddings', { model: 'tiny', input: 'Hi' })

  const text = JSON.stringify(lines())
  expect(text).toContain('RangeError: a bug')
  expect(text).toContain('loggers.test.ts')
  expect(lines().at(-1)).toMatchObject({ model: 'tiny:latest', requestId: expect.any(String) })
})

test('`console` fits, too', async () => {
  const log = vi.spyOn(console, 'info').mockImplementation(() => {})
  onTestFinished(() => log.mockRestore())
  const llm = await createLlm({ models: emptyFolder(), logger: messageFirst(console), accessLog: true })
  onTestFinished(() => llm.close())

  await llm.countTokens({ model: 'tiny', input: { kind: 'text', prompt: ['Hello'] } })

  expect(log.mock.calls.at(-1)).toMatchObject(['call ended', { kind: 'count', model: 'tiny:latest' }])
})
