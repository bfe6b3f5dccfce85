/** Checks docs/operations/deploy/systemd/modelmount.service, and runs its command with the restrictions that need no systemd. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test, vi } from 'vitest'
import { root } from '../packaging/npm.ts'
import { emptyFolder } from '../support/empty-folder.ts'
import { readRecipe, requireProgram } from './debian.ts'

vi.setConfig({ testTimeout: 120_000 })

const folder = emptyFolder()
const bin = join(root, 'packages/cli/bin/modelmount.js')
const unit = readRecipe('systemd/modelmount.service')
const valuesOf = (name: string): readonly string[] =>
  Array.from(unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm')), ([, value = '']) => value)

const analyze = (...args: readonly string[]): string =>
  execFileSync('systemd-analyze', args, { encoding: 'utf8', stdio: 'pipe' })

function writeUnit(): string {
  const file = join(folder, 'modelmount.service')
  const installed = '/opt/modelmount/node_modules/modelmount/bin/modelmount.js'
  expect(unit).toContain(`ExecStart=/usr/bin/node ${installed} serve `)
  writeFileSync(file, unit.replace('/usr/bin/node', process.execPath).replace(installed, bin))
  return file
}

test('systemd accepts the unit, and rates its exposure as low', () => {
  const file = writeUnit()

  expect(analyze('verify', file)).toBe('')
  const [, exposure] =
    /Overall exposure level.*: ([\d.]+)/.exec(analyze('security', '--offline=true', file)) ?? []
  expect(Number(exposure)).toBeLessThan(2)
})

test('the time to stop is longer than the drain and 5 s, and model processes outlast it', () => {
  const [, drain] = /--drain (\d+)/.exec(unit) ?? []

  expect(Number(valuesOf('TimeoutStopSec')[0])).toBeGreaterThan(Number(drain) + 5)
  // SIGTERM would end model processes, and with them the answers that drain.
  expect(valuesOf('KillMode')).toEqual(['mixed'])
  expect(valuesOf('MemoryDenyWriteExecute')).toEqual([])
})

test('a server with a loaded model uses no system call and no kind of socket that the unit forbids', async () => {
  const trace = join(folder, 'trace')
  const environment = {
    ...process.env,
    XDG_RUNTIME_DIR: join(folder, 'run'),
    OLLAMA_MODELS: join(folder, 'models'),
  }
  const serve = [bin, 'serve', '--port', '0', '--data', join(folder, 'data')]
  const child = spawn(
    requireProgram('strace'),
    ['-f', '-qq', '-e', 'signal=none', '-o', trace, process.execPath, ...serve],
    { env: environment, stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const response = await fetch(`${String(line).replace('Listening on ', '')}/api/chat`, {
    method: 'POST',
    body: JSON.stringify({ model: 'tiny', stream: false, messages: [{ role: 'user', content: 'Hello' }] }),
  })
  expect(await response.json()).toMatchObject({ done: true })
  const [server] = execFileSync('pgrep', ['-P', `${child.pid}`], { encoding: 'utf8' }).split('\n')
  process.kill(Number(server), 'SIGTERM')
  await once(child, 'close')

  const text = readFileSync(trace, 'utf8')
  const calls = new Set(Array.from(text.matchAll(/^\d+ +([a-z]\w*)\(/gm), ([, name = '']) => name))
  const families = new Set(Array.from(text.matchAll(/ socket\((AF_\w+)/g), ([, name = '']) => name))
  const allowed = callsIn('@system-service')
  // V8 works without it. With the error number of the unit, a forbidden call fails and does not end the process.
  expect([...calls].filter((name) => !allowed.has(name) && name !== 'pkey_alloc')).toEqual([])
  expect(valuesOf('SystemCallErrorNumber')).toEqual(['EPERM'])
  expect(valuesOf('RestrictAddressFamilies').join(' ').split(' ')).toEqual(
    expect.arrayContaining([...families]),
  )
})

/** The system calls of a group, and of the groups in it. */
function callsIn(group: string): ReadonlySet<string> {
  const names = analyze('syscall-filter', group)
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  return new Set(names.flatMap((name) => (name.startsWith('@') ? [...callsIn(name)] : [name])))
}
