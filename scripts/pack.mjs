// Packs packages as npm is to publish them, and prints the paths of the tarballs: node scripts/pack.mjs <into> <package>...
// Core is bundled, since an app waits for each file that it loads, and zod alone has a hundred. The bundle is nowhere but in the
// tarball: in this repository all runs as tsc wrote it, and nothing is tested that is older than its source.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

/** The dependency that becomes a part of the bundle. */
const inlined = 'zod'
const processes = 'dist/engine/local/model-process'

const root = fileURLToPath(new URL('..', import.meta.url))
const core = join(root, 'packages/core')
const [into, ...names] = process.argv.slice(2)
const stage = mkdtempSync(join(tmpdir(), 'pack-'))
try {
  if (names.includes('core')) await stageCore()
  const folders = names.map((name) => (name === 'core' ? stage : join(root, 'packages', name)))
  const packed = execFileSync('npm', ['pack', ...folders, '--silent', '--pack-destination', into], {
    shell: process.platform === 'win32',
  })
  for (const file of packed.toString().trim().split('\n')) process.stdout.write(`${resolve(into, file)}\n`)
} finally {
  rmSync(stage, { recursive: true })
}

async function stageCore() {
  const manifest = JSON.parse(readFileSync(join(core, 'package.json'), 'utf8'))
  delete manifest.dependencies[inlined]
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  for (const name of ['README.md', 'LICENSE']) cpSync(join(core, name), join(stage, name))
  cpSync(join(root, 'node_modules', inlined, 'LICENSE'), join(stage, 'dist', `LICENSE.${inlined}`))
  for (const file of readdirSync(join(core, 'dist'), { recursive: true }))
    if (file.endsWith('.d.ts')) cpSync(join(core, 'dist', file), join(stage, 'dist', file))

  const external = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })
  // Two bundles: the app and its processes have no object in common. The files of each lie where they look for others.
  await bundle('dist', ['index', 'http/index', 'limits/index', 'testing/index'], external)
  await bundle(processes, ['main', ...startedIn(join(core, processes))], external)
}

async function bundle(folder, entries, external) {
  const input = Object.fromEntries(entries.map((name) => [name, join(core, folder, `${name}.js`)]))
  const build = await rolldown({ input, external, platform: 'node', onLog: refuse })
  await build.write({ dir: join(stage, folder) })
}

/** The workers and processes that start from a file of the folder. */
function startedIn(folder) {
  const files = readdirSync(folder).filter((file) => file.endsWith('.js'))
  const code = files.map((file) => readFileSync(join(folder, file), 'utf8')).join('\n')
  return Array.from(code.matchAll(/new URL\('\.\/([^']+)\.js', import\.meta\.url\)/g), ([, name]) => name)
}

function refuse(_level, { message }) {
  throw new Error(message)
}
