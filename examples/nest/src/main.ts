/** Starts the app. SIGTERM and Ctrl-C end it as soon as its running answers have ended. */
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { AppModule } from './app.module.ts'

const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: ['warn', 'error'] })

app.useBodyParser('json', { limit: '32mb' }) // Nest's own limit of 100 kB is too small for long prompts.
app.enableShutdownHooks()
await app.listen(process.env.PORT ?? 3000, '127.0.0.1')
console.log(`Listening on ${await app.getUrl()}`)
