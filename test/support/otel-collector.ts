/** Builds and starts a collector of OpenTelemetry, with its own builder. Needs Go and its module proxy. */
import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from './free-port.ts'
import { until } from './processes.ts'

const version = 'v0.165.0'
const run = promisify(execFile)

/** Receives spans by OTLP over HTTP, and prints each of them with all fields. */
export interface Collector {
  /** Where apps send spans. */
  readonly url: string
  printed(): string
  stop(): Promise<void>
}

/** The build takes minutes, and is kept for later runs. */
async function build(): Promise<string> {
  const folder = join(tmpdir(), `modelmount-otelcol-${version}`)
  const binary = join(folder, 'out', 'otelcol')
  if (existsSync(binary)) return binary
  mkdirSync(folder, { recursive: true })
  const manifest = [
    'dist:',
    '  name: otelcol',
    `  output_path: ${join(folder, 'out')}`,
    'receivers:',
    `  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver ${version}`,
    'exporters:',
    `  - gomod: go.opentelemetry.io/collector/exporter/debugexporter ${version}`,
  ]
  writeFileSync(join(folder, 'build.yaml'), manifest.join('\n'))
  const builder = `go.opentelemetry.io/collector/cmd/builder@${version}`
  await run('go', ['run', builder, '--config', join(folder, 'build.yaml')], { cwd: folder, timeout: 900_000 })
  return binary
}

export async function startCollector(folder: string): Promise<Collector> {
  const binary = await build()
  const port = await freePort()
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: { debug: { verbosity: 'detailed' } },
    service: {
      // Its own metrics would take a fixed port.
      telemetry: { metrics: { level: 'none' } },
      pipelines: { traces: { receivers: ['otlp'], exporters: ['debug'] } },
    },
  }
  const file = join(folder, 'config.json')
  writeFileSync(file, JSON.stringify(config))
  const child = spawn(binary, ['--config', file], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  let text = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  await until(() => text.includes('Everything is ready'), 20_000)
  return {
    url: `http://127.0.0.1:${port}/v1/traces`,
    printed: () => text,
    stop: async () => {
      child.kill()
      await ended
    },
  }
}
