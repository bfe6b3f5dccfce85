/** An app in a child process, so that the work of clients in the test's own process is not measured. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

interface Measurement {
  /** Ids of the model processes. */
  readonly modelProcesses: readonly number[]
  /** 99th percentile of the app's event loop delay since the last measurement, in milliseconds. */
  readonly loopDelayMs: number
  /** Size of the app's heap after a garbage collection. */
  readonly heapBytes: number
}

export interface MeasuredApp {
  readonly url: string
  /** Unix socket of the same app. It buffers little, while a TCP connection of one machine buffers whole answers. */
  readonly socketPath: string
  readonly processId: number
  measure(): Promise<Measurement>
  /** Resolves when the app has exited. */
  close(): Promise<void>
}

/**
 * Starts an app that serves the built-in model, and loads the model. The header `x-tenant` names the caller.
 * @param models folder of the models
 */
export async function startMeasuredApp(models: string): Promise<MeasuredApp> {
  const file = fileURLToPath(new URL('measured-app.mjs', import.meta.url))
  const socketPath = join(models, 'app.sock')
  const app = spawn(process.execPath, ['--expose-gc', file, models, socketPath], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [port] = await Promise.race([once(createInterface({ input: app.stdout }), 'line'), failedStart(app)])
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    socketPath,
    processId: app.pid as number,
    measure: async () => (await (await fetch(`${url}/measured`)).json()) as Measurement,
    close: async () => {
      app.stdin.end()
      if (app.exitCode === null) await once(app, 'exit')
    },
  }
}

/** Rejects when the app exits. */
async function failedStart(app: ChildProcess): Promise<never> {
  await once(app, 'exit')
  throw new Error('The app has exited before it listened.')
}
