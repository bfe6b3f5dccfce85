// Packs every public package as npm would publish it, and looks at it as a stranger would.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const out = mkdtempSync(join(tmpdir(), 'packages-'))
const run = (command, ...args) =>
  execFileSync(command, args, { stdio: ['ignore', 'pipe', 'inherit'] }).toString()
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`
try {
  for (const name of readdirSync('packages')) {
    const folder = `./packages/${name}`
    const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    run('npx', 'publint', '--strict', folder)
    const [{ filename, size, unpackedSize }] = JSON.parse(
      run('npm', 'pack', folder, '--json', '--pack-destination', out),
    )
    // A package of commands has no types to check.
    if ('.' in exports) {
      const unchecked = Object.keys(exports).filter((door) => /\.gguf$|model-process$/.test(door))
      run(
        'npx',
        'attw',
        join(out, filename),
        '--profile',
        'esm-only',
        '--exclude-entrypoints',
        ...unchecked,
        './none',
      )
    }
    process.stdout.write(`${name}: ${kilobytes(size)} packed, ${kilobytes(unpackedSize)} unpacked\n`)
  }
} finally {
  rmSync(out, { recursive: true })
}
