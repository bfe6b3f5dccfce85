// Packs every public package as npm would publish it, then checks exports and types with publint and attw.
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const out = mkdtempSync(join(tmpdir(), 'packages-'))
try {
  const names = readdirSync('packages')
  const tarballs = (await node('scripts/pack.mjs', out, ...names)).trim().split('\n')
  const checks = tarballs.map((tarball, index) => check(names[index], tarball))
  // All end before their files are removed.
  await Promise.allSettled(checks)
  for (const [index, checked] of checks.entries()) {
    await checked
    process.stdout.write(`${names[index]}: ${(statSync(tarballs[index]).size / 1000).toFixed(1)} kB packed\n`)
  }
} finally {
  rmSync(out, { recursive: true })
}

async function check(name, tarball) {
  const { exports } = JSON.parse(readFileSync(join('packages', name, 'package.json'), 'utf8'))
  await node('node_modules/publint/src/cli.js', 'run', tarball, '--strict')
  // A package without a main entry point, such as the CLI, has no types to check.
  if (!('.' in exports)) return
  const unchecked = Object.keys(exports).filter((entryPoint) =>
    /\.gguf$|model-process$|-worker$/.test(entryPoint),
  )
  const options = ['--profile', 'esm-only', '--exclude-entrypoints', ...unchecked, './none']
  await node('node_modules/@arethetypeswrong/cli/dist/index.js', tarball, ...options)
}

/** Returns the standard output, and prints the standard error. Prints both if the script fails. */
async function node(...words) {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, words).catch((failure) => {
    process.stdout.write(failure.stdout ?? '')
    process.stderr.write(failure.stderr ?? '')
    throw failure
  })
  process.stderr.write(stderr)
  return stdout
}
