/** Starts the app. SIGTERM and Ctrl-C end it as soon as its running answers have ended. */
import { createLlm } from '@modelmount/core'
import { createApp } from './app.js'

const app = createApp(await createLlm())
const url = await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })
console.log(`Listening on ${url}`)

process.once('SIGTERM', () => app.close())
process.once('SIGINT', () => app.close())
