/** Starts the app. SIGTERM and Ctrl-C end it as soon as its running answers have ended. */
import { summarizeRoutes } from '@modelmount/nest'
import { ConsoleLogger } from '@nestjs/common'
import { ConfigService } from '@nestjs/config'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { AppModule } from './app.module.js'

const app = await NestFactory.create<NestExpressApplication>(AppModule, {
  logger: summarizeRoutes(new ConsoleLogger({ json: true })),
})
const config = app.get(ConfigService)

app.useBodyParser('json', { limit: '32mb' }) // Nest's own limit of 100 kB is too small for long prompts.
app.set('trust proxy', 'loopback') // the balancer in front of it
app.enableShutdownHooks()
await app.listen(config.getOrThrow<number>('PORT'), config.getOrThrow<string>('HOST'))
console.log(`Listening on ${await app.getUrl()}`)
