// Installs a build of node-llama-cpp that this repository replaces with an empty package (`overrides` in
// package.json). The argument names the build. Without one, the script takes the build for this machine. Run
// it again after each `npm ci`.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const builds = {
  'linux-arm': 'linux-armv7l',
  'linux-riscv64': 'linux-riscv64',
  'darwin-arm64': 'mac-arm64-metal',
  'darwin-x64': 'mac-x64',
  'win32-x64': 'win-x64',
  'win32-arm64': 'win-arm64',
}
const build = process.argv[2] ?? builds[`${process.platform}-${process.arch}`]
if (!build) throw new Error('`npm ci` installs the engine build for this machine, or no build exists.')

const { version } = JSON.parse(readFileSync('node_modules/node-llama-cpp/package.json', 'utf8'))
const target = join('node_modules', '@node-llama-cpp', build)
const folder = mkdtempSync(join(tmpdir(), 'engine-'))
try {
  const packed = execFileSync('npm', ['pack', `@node-llama-cpp/${build}@${version}`, '--json'], {
    cwd: folder,
    shell: process.platform === 'win32',
  })
  const [{ filename }] = JSON.parse(packed.toString())
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  execFileSync('tar', ['-xzf', join(folder, filename), '--strip-components=1', '-C', target])
  process.stdout.write(`Installed ${target}.\n`)
} finally {
  rmSync(folder, { recursive: true })
}
