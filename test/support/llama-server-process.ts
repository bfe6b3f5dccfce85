/** Starts llama.cpp's server with the built-in model. */
import { spawn } from 'node:child_process'
import { modelPath } from '@modelmount/tiny-model'
import { buildLlamaServer } from '../peers/llama-server.ts'
import { freePort } from './free-port.ts'
import { until } from './processes.ts'

export interface LlamaServerProcess {
  readonly url: string
  stop(): void
}

/** Resolves when the server is healthy. @param options further options of the command line */
export async function startLlamaServer(...options: readonly string[]): Promise<LlamaServerProcess> {
  const { executable } = await buildLlamaServer()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const server = spawn(
    executable,
    ['--model', modelPath, '--host', '127.0.0.1', '--port', `${port}`, '--jinja', ...options],
    { stdio: 'ignore' },
  )
  let isHealthy = false
  const watch = setInterval(async () => {
    isHealthy = await fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    )
  }, 200)
  try {
    await until(() => isHealthy, 60_000)
  } catch (error) {
    server.kill()
    throw error
  } finally {
    clearInterval(watch)
  }
  return { url, stop: () => void server.kill() }
}
