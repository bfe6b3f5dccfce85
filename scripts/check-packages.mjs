// Packs every public package as npm would publish it, then checks exports and types with publint and attw.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const out = mkdtempSync(join(tmpdir(), 'packages-'))
const run = (command, ...args) =>
  execFileSync(command, args, { stdio: ['ignore', 'pipe', 'inherit'] }).toString()
try {
  const names = readdirSync('packages')
  const tarballs = run('node', 'scripts/pack.mjs', out, ...names)
    .trim()
    .split('\n')
  for (const [index, tarball] of tarballs.entries()) {
    const { exports } = JSON.parse(readFileSync(join('packages', names[index], 'package.json'), 'utf8'))
    run('npx', 'publint', 'run', tarball, '--strict')
    // A package without a main entry point, such as the CLI, has no types to check.
    if ('.' in exports) {
      const unchecked = Object.keys(exports).filter((entryPoint) => /\.gguf$|model-process$/.test(entryPoint))
      run('npx', 'attw', tarball, '--profile', 'esm-only', '--exclude-entrypoints', ...unchecked, './none')
    }
    process.stdout.write(`${names[index]}: ${(statSync(tarball).size / 1000).toFixed(1)} kB packed\n`)
  }
} finally {
  rmSync(out, { recursive: true })
}
