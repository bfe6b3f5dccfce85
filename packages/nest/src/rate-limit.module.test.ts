import { type ClosableRateLimiter, createRateLimiter } from '@modelmount/core/limits'
import { Controller, type DynamicModule, Get, type INestApplication, Module, UseGuards } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import request from 'supertest'
import { expect, onTestFinished, test, vi } from 'vitest'
import { RATE_LIMITER, RateLimitGuard, RateLimitModule } from './index.ts'

@Controller()
@UseGuards(RateLimitGuard)
class Pages {
  @Get('hello')
  hello() {
    return 'hello'
  }
}

class Feature {}
Module({ controllers: [Pages] })(Feature)

async function start(imports: (DynamicModule | typeof Feature)[], controllers = [Pages]) {
  class App {}
  Module({ imports, controllers })(App)
  const app: INestApplication = await NestFactory.create(App, { logger: false, abortOnError: false })
  await app.init()
  onTestFinished(() => app.close())
  const get = async () => (await request(app.getHttpServer()).get('/hello')).status
  return { app, get }
}

test('forRoot creates the limiter of the guards', async () => {
  const { get } = await start([RateLimitModule.forRoot({ limits: { requestsPerMinute: 2 } })])

  expect([await get(), await get(), await get()]).toEqual([200, 200, 429])
})

test('forRootAsync creates the limiter with the options of a factory', async () => {
  const useFactory = async (requestsPerMinute: number) => ({ limits: { requestsPerMinute } })
  const Settings: DynamicModule = {
    module: class {},
    providers: [{ provide: 'REQUESTS', useValue: 1 }],
    exports: ['REQUESTS'],
  }
  const { get } = await start([
    RateLimitModule.forRootAsync({ imports: [Settings], inject: ['REQUESTS'], useFactory }),
  ])

  expect([await get(), await get()]).toEqual([200, 429])
})

test('a global module provides the limiter for guards of other modules', async () => {
  const limits = { requestsPerMinute: 1 }
  const { get } = await start([RateLimitModule.forRoot({ limits, isGlobal: true }), Feature], [])

  expect([await get(), await get()]).toEqual([200, 429])
  await expect(start([RateLimitModule.forRoot({ limits }), Feature], [])).rejects.toThrow('RateLimitGuard')
})

test('the module closes its own limiter with the app', async () => {
  const { app } = await start([RateLimitModule.forRoot({ limits: { requestsPerMinute: 1 } })])
  const close = vi.spyOn(app.get<ClosableRateLimiter>(RATE_LIMITER), 'close')

  await app.close()

  expect(close).toHaveBeenCalledOnce()
})

test('an existing limiter is used and not closed', async () => {
  const limiter = await createRateLimiter({ limits: { requestsPerMinute: 1 } })
  const close = vi.spyOn(limiter, 'close')
  const { app, get } = await start([RateLimitModule.forRootAsync({ useFactory: () => ({ limiter }) })])

  expect([await get(), await get()]).toEqual([200, 429])
  await app.close()
  expect(app.get(RATE_LIMITER)).toBe(limiter)
  expect(close).not.toHaveBeenCalled()
})

test.each([
  [{ limit: 5 }, 'Unknown option `limit`'],
  [{ limiter: {}, limits: { requestsPerMinute: 1 } }, 'Expected `limiter` without `limits`'],
])('invalid options stop the start of the app: %j', async (options, message) => {
  await expect(start([RateLimitModule.forRoot(options as never)])).rejects.toThrow(message)
})
