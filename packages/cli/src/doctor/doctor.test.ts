import { execFile } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { listen } from '../../../../test/support/listen.ts'
import { noiseModel } from '../../../../test/support/models.ts'
import type { Finding } from './finding.ts'

const bin = fileURLToPath(new URL('../../bin/modelmount.js', import.meta.url))
const root = emptyFolder()
let count = 0
let models: string

beforeEach(() => {
  models = join(root, `${++count}`)
  mkdirSync(models)
  copyFileSync(noiseModel, join(models, 'noise.gguf'))
})

interface Ended {
  readonly code: number
  readonly stdout: string
}

const run = (
  command: string,
  args: readonly string[],
  options: { readonly uid?: number } = {},
): Promise<Ended> =>
  new Promise((resolve) => {
    const env = { ...process.env, OLLAMA_MODELS: models, OLLAMA_HOST: '127.0.0.1:11999' }
    execFile(command, args, { env, cwd: root, ...options }, (error, stdout) =>
      resolve({ code: Number(error?.code ?? 0), stdout }),
    )
  })

const doctor = (...args: readonly string[]) => run(process.execPath, [bin, 'doctor', ...args])

const findingsOf = ({ stdout }: Ended): readonly Finding[] => JSON.parse(stdout).findings

const findingOf = (ended: Ended, check: string) => findingsOf(ended).find((one) => one.check === check)

test('on a sound machine, each check has a line, the built-in model answers, and the exit code is 0', async () => {
  const { code, stdout } = await doctor()

  expect([stdout, code]).toEqual([expect.stringMatching(/^0 problems, \d warnings?$/m), 0])
  expect(stdout).toMatch(/^ok {7}answer {10}The built-in model answered within /m)
  const checks = [...stdout.matchAll(/^(?:ok|warning) +(\S+(?: \S+)*?) {2,}/gm)].map(([, check]) => check)
  expect(new Set(checks)).toEqual(
    new Set([
      ...['Node.js', 'engine', 'processor', 'graphics card', 'memory', 'runtime folder', 'answer', 'models'],
      ...['registries', 'database', 'open files', 'port'],
      ...(process.platform === 'linux' ? ['RAM disk'] : []),
    ]),
  )
})

test('checks the options, database and port that serve would use', async () => {
  const { url, close } = await listen((_request, response) => void response.end('hello'))
  onTestFinished(close)
  const { port } = new URL(url)
  const config = join(root, 'sound.json')
  writeFileSync(config, JSON.stringify({ auth: 'keys', database: 'keys.db', local: { promptCache: 0 } }))

  const ended = await doctor('--json', '--config', config, '--port', port)

  expect(findingOf(ended, 'configuration')).toMatchObject({ status: 'ok', message: `${config} is valid` })
  expect(findingOf(ended, 'database')?.message).toBe(`serve creates ${join(root, 'keys.db')}`)
  expect(findingOf(ended, 'port')).toMatchObject({
    status: 'warning',
    message: `127.0.0.1:${port} is in use by another program.`,
  })
  if (process.platform === 'linux') expect(findingOf(ended, 'RAM disk')?.message).toContain('Not used')
  expect(ended.code).toBe(0)
})

test('an invalid configuration is a problem, and the other checks still run', async () => {
  const config = join(root, 'broken.json')
  writeFileSync(config, JSON.stringify({ local: { threads: 0 } }))

  const ended = await doctor('--json', '--config', config)

  expect(findingOf(ended, 'configuration')).toMatchObject({
    status: 'problem',
    message: expect.stringContaining('local.threads'),
  })
  expect(findingOf(ended, 'answer')?.status).toBe('ok')
  expect([ended.code, JSON.parse(ended.stdout).problems]).toEqual([1, 1])
})

test.runIf(process.platform === 'linux')('a low limit of open files is a problem', async () => {
  const ended = await run('prlimit', ['--nofile=256:256', process.execPath, bin, 'doctor', '--json'])

  expect(findingOf(ended, 'open files')).toMatchObject({
    status: 'problem',
    message: 'Up to 256, which is too few for a server.',
    fix: expect.stringContaining('ulimit -n'),
  })
  expect(ended.code).toBe(1)
})

test.runIf(process.platform === 'linux')(
  'a folder of models that cannot be written is a warning',
  async () => {
    chmodSync(root, 0o755)
    chmodSync(models, 0o555)
    onTestFinished(() => chmodSync(models, 0o755))
    // The permissions of files do not restrict root.
    const user = process.getuid?.() === 0 ? { uid: 65_534 } : {}

    const ended = await run(process.execPath, [bin, 'doctor', '--json'], user)

    expect(findingsOf(ended)).toContainEqual({
      check: 'models',
      status: 'warning',
      message: `${models} cannot be written, so models cannot be pulled or created.`,
      fix: `sudo chown -R "$(id -un)" ${models}`,
    })
  },
)
