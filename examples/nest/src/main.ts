import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { AppModule } from './app.module.ts'

const app = await NestFactory.create<NestExpressApplication>(AppModule)

app.useBodyParser('json', { limit: '32mb' }) // Nest's own limit of 100 kB is too small for long prompts.
app.enableShutdownHooks() // Ctrl-C closes the model, too.
await app.listen(3000, '127.0.0.1')
