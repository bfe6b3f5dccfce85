/** A real Prometheus and its `promtool` for tests, if they are on the PATH: Debian's package `prometheus`. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'

const find = (name: string): string | undefined =>
  (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path))

const [server, tool] = ['prometheus', 'promtool'].map(find)

/** `.ci/run` has both, so that no test is skipped there. */
export const hasPrometheus = (server !== undefined && tool !== undefined) || process.env.CI !== undefined

const missing =
  'prometheus is not on the PATH: install it, or unpack it with apt-get download prometheus && dpkg -x'

/** Runs `promtool`, and returns what it has printed. */
export function promtool(args: readonly string[], input = ''): { status: number | null; output: string } {
  if (!tool) throw new Error(missing)
  const { status, stdout, stderr } = spawnSync(tool, args, { input, encoding: 'utf8' })
  return { status, output: stdout + stderr }
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Prometheus {
  readonly url: string
  /** Evaluates an expression now. Throws if it does not parse. */
  query(expression: string): Promise<readonly Sample[]>
  /** Resolves when a scrape that began after the call has succeeded. */
  scraped(): Promise<void>
  close(): Promise<void>
}

/** Starts Prometheus on a free port of the loopback address. It scrapes `/metrics` of an app once a second. */
export async function startPrometheus(appUrl: string): Promise<Prometheus> {
  if (!server) throw new Error(missing)
  const folder = mkdtempSync(join(tmpdir(), 'prometheus-'))
  const config = join(folder, 'prometheus.yml')
  writeFileSync(
    config,
    `global: { scrape_interval: 1s }
scrape_configs:
  - job_name: modelmount
    static_configs: [{ targets: ['${new URL(appUrl).host}'] }]
`,
  )
  const settings = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    '--web.listen-address=127.0.0.1:0',
  ]
  const child = spawn(server, settings, { stdio: ['ignore', 'ignore', 'pipe'] })
  const url = `http://${await addressOf(child)}`
  const ask = async (path: string) => {
    const response = await fetch(url + path)
    const body = (await response.json()) as { readonly data: unknown; readonly error?: string }
    if (!response.ok) throw new Error(`${decodeURIComponent(path)}: ${body.error}`)
    return body.data
  }
  return {
    url,
    query: async (expression) => {
      const data = (await ask(`/api/v1/query?query=${encodeURIComponent(expression)}`)) as QueryResult
      return data.result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }))
    },
    scraped: () => scrapedSince(Date.now(), () => ask('/api/v1/targets?state=active') as Promise<Targets>),
    close: async () => {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface QueryResult {
  readonly result: readonly { readonly metric: Sample['labels']; readonly value: readonly [number, string] }[]
}

interface Targets {
  readonly activeTargets: readonly {
    readonly health: string
    readonly lastScrape: string
    readonly lastError: string
  }[]
}

/** The address is free in the moment in which Prometheus chooses it, so its log has to tell it. */
async function addressOf({ stderr }: ChildProcess): Promise<string> {
  const lines: string[] = []
  let address: string | undefined
  // The lines after the last one that is needed are read, too, so that the pipe never fills up.
  const found = new Promise<string>((resolve, reject) => {
    createInterface({ input: stderr as NonNullable<typeof stderr> })
      .on('line', (line) => {
        if (lines.length < 100) lines.push(line)
        address ??= /msg="?Listening on"? address=(127\.0\.0\.1:\d+)/.exec(line)?.[1]
        if (address && line.includes('Server is ready')) resolve(address)
      })
      .on('close', () => reject(new Error(`Prometheus has ended: ${lines.join('\n')}`)))
  })
  return found
}

async function scrapedSince(startMs: number, read: () => Promise<Targets>): Promise<void> {
  for (const limit = startMs + 15_000; ; await delay(50)) {
    const [target] = (await read()).activeTargets
    if (target && target.health === 'up' && Date.parse(target.lastScrape) > startMs) return
    if (Date.now() > limit) throw new Error(`No scrape has succeeded: ${target?.lastError}`)
  }
}
