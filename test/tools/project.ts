/** Projects outside this workspace, in which tools of users are tried with the packed packages. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { emptyProject, environment, pack, root } from '../packaging/npm.ts'

/** The versions that docs/guides/bundlers-and-tools.md names. */
const versions = {
  '@hono/node-server': '2.1.9',
  '@nestjs/common': '12.5.1',
  '@nestjs/core': '12.5.1',
  '@nestjs/platform-express': '12.5.1',
  '@nestjs/testing': '12.1.1',
  '@swc/core': '1.16.22',
  '@swc/jest': '0.2.39',
  esbuild: '0.28.2',
  express: '5.3.0',
  hono: '4.13.19',
  jest: '30.5.2',
  next: '16.4.6',
  pm2: '7.0.4',
  react: '19.3.1',
  'react-dom': '19.3.1',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
  supertest: '7.3.2',
  'ts-loader': '9.6.2',
  tsx: '4.23.15',
  typescript: '5.9.3',
  webpack: '5.113.0',
  'webpack-cli': '7.3.1',
}
type Tool = keyof typeof versions

export interface ToolProject {
  readonly folder: string
  remove(): Promise<void>
}

/**
 * Creates a project with the local engine, tools, and the files of `apps/`.
 *
 * @param files contents of further files
 */
export async function createProject(
  app: string,
  adapters: readonly ('express' | 'nest')[],
  tools: readonly Tool[],
  manifest: object = {},
  files: Readonly<Record<string, string>> = {},
): Promise<ToolProject> {
  const parent = await mkdtemp(join(tmpdir(), `${app}-`))
  const tarballs = await pack(['core', 'tiny-model', ...adapters], parent)
  const { overrides, devDependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const engine = [
    'node-llama-cpp@3.22.1',
    `@photostructure/sqlite@${devDependencies['@photostructure/sqlite']}`,
  ]
  const install = [...tarballs, ...engine, ...tools.map((name) => `${name}@${versions[name]}`)]
  const folder = await emptyProject(join(parent, app), { overrides, ...manifest }, install)
  await cp(join(root, 'test/tools/apps', app), folder, { recursive: true })
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
  return { folder, remove: () => rm(parent, { recursive: true, force: true }) }
}

export interface RunningApp {
  /** Resolves with the next address that the app prints. */
  nextAddress(): Promise<string>
  /** Sends SIGTERM to the app and its parents, and resolves when they have ended. */
  stop(): Promise<void>
}

/** Starts a command that prints the address of an app, without a trailing slash. */
export function start(command: string, args: readonly string[], cwd: string, env: object = {}): RunningApp {
  const child: ChildProcess = spawn(command, args, {
    cwd,
    env: { ...environment, PORT: '0', ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  return {
    nextAddress: async () => {
      for (;;) {
        const { value = '', done } = await lines.next()
        if (done) throw new Error(`${command} ${args.join(' ')} ended without printing an address`)
        const [address] = /http:\/\/127[.\d]+:\d+/.exec(value) ?? []
        if (address) return address
      }
    },
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null)
        process.kill(-(child.pid as number), 'SIGTERM')
      await closed
    },
  }
}

/** The answer of the built-in model to a greeting, through the routes below `/llm`. */
export async function greet(url: string): Promise<unknown> {
  const response = await fetch(`${url}/llm/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', cookie: 'session=a' },
    body: JSON.stringify({ model: 'tiny', temperature: 0, messages: [{ role: 'user', content: 'Hello' }] }),
  })
  const body = (await response.json()) as { choices?: { message: { content: string } }[] }
  return body.choices?.[0]?.message.content ?? body
}

export const greeting = 'Hello! How can I help you?'
