/** Runs the pages of `docs/start` as a reader does: writes their files, starts the app, runs curl and the SDKs, stops it. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { root } from '../packaging/npm.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { freePort } from '../support/free-port.ts'
import { codeBlocks } from '../support/pages.ts'

const run = promisify(execFile)

/** Writes the files of a page: blocks that begin with `// name.js`, and what continues them. Returns the last one. */
function writeFiles(page: string, folder: string): string {
  const files = new Map<string, string>()
  let last = ''
  for (const { code, mark, language } of codeBlocks(page)) {
    const [, name] = /^\/\/ ([\w.]+\.[jt]s)\n/.exec(code) ?? []
    if (name !== undefined) last = name
    if (name === undefined && mark !== 'continues') continue
    if (['js', 'ts'].includes(language)) files.set(last, (files.get(last) ?? '') + code)
  }
  for (const [name, code] of files) writeFileSync(join(folder, name.replace(/ts$/, 'js')), compile(code))
  return [...files.keys()].find((name) => /^(server|main)/.test(name))?.replace(/ts$/, 'js') ?? ''
}

/** Compiles TypeScript as Nest's own projects do. */
const compile = (code: string): string =>
  ts.transpileModule(code, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.ESNext,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
      rewriteRelativeImportExtensions: true,
    },
  }).outputText

/** Lets curl fail when the answer is an error. */
const curl = 'curl() { command curl -sS --fail "$@"; }\n'

const curls = (page: string): readonly string[] =>
  codeBlocks(page)
    .filter(({ language }) => language === 'sh')
    .flatMap(({ code }) => code.split('\n\n'))
    .filter((command) => command.includes('curl '))

async function stop(app: ChildProcess): Promise<number | null> {
  const ended = once(app, 'exit')
  app.kill('SIGTERM')
  const [code] = await ended
  return code
}

/** Starts a command that listens on a port, and waits until it answers. */
async function start(
  args: readonly string[],
  cwd: string,
  url: string,
  env: NodeJS.ProcessEnv,
): Promise<ChildProcess> {
  const app = spawn(process.execPath, args, { cwd, env: { ...process.env, ...env }, stdio: 'ignore' })
  onTestFinished(() => void app.kill('SIGKILL'))
  await vi.waitFor(async () => expect((await fetch(url)).status).toBe(200), {
    timeout: 20_000,
    interval: 100,
  })
  return app
}

/** Exit codes after SIGTERM. Nest sends itself the signal again. */
const exitCodes = { express: 0, koa: 0, nest: null, fastify: 0 }

describe.each(Object.entries(exitCodes))('start/%s.md', (name, endsWith) => {
  test('leads to an app that answers curl and the SDKs, and ends on SIGTERM', async () => {
    const page = `docs/start/${name}.md`
    const folder = emptyFolder()
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const main = writeFiles(page, folder)
    const port = await freePort()
    const local = (text: string): string => text.replaceAll('127.0.0.1:3000', `127.0.0.1:${port}`)
    const app = await start([main], folder, `http://127.0.0.1:${port}/llm/v1/models`, {
      PORT: String(port),
      OLLAMA_MODELS: emptyFolder(),
    })

    const answers = await Promise.all(
      curls(page).map((command) => run('bash', ['-c', `${curl}${local(command)}`])),
    )
    const ask = codeBlocks(page).find(({ code }) => code.startsWith('// ask.js'))
    writeFileSync(join(folder, 'ask.js'), local(ask?.code ?? ''))
    const { stdout } = await run(process.execPath, ['ask.js'], { cwd: folder })

    expect(answers.map((answer) => answer.stdout.length > 100)).toEqual([true, true, true])
    expect(stdout).toContain("role: 'assistant'")
    expect(await stop(app)).toBe(endsWith)
  }, 60_000)
})

test('start/command-line.md leads to a server that answers curl', async () => {
  const page = 'docs/start/command-line.md'
  const port = await freePort()
  const modelmount = join(root, 'packages/cli/bin/modelmount.js')
  const folder = emptyFolder()
  const app = await start(
    [modelmount, 'serve', '--models', folder, '--port', String(port)],
    root,
    `http://127.0.0.1:${port}/v1/models`,
    {},
  )
  const commands = curls(page).map((command) => command.replaceAll(':11434', `:${port}`))

  const answers = await Promise.all(
    commands.map((command) => run('bash', ['-c', `${curl}modelmount() { :; }\n${command}`])),
  )

  expect(answers.map(({ stdout }) => stdout.length > 100)).toEqual([true, true, true])
  expect(await stop(app)).toBe(0)
}, 60_000)
