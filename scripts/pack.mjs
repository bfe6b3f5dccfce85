// Packs packages for npm and prints the paths of the tarballs: node scripts/pack.mjs <into> <package>...
// Core is bundled, because an app waits for each file that it loads, and zod alone has a hundred. Only the
// tarball contains the bundle. The repository runs the output of tsc, so that no test runs old code.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { toRegistryReadme } from './readme.mjs'

/** The dependency that is included in the bundle. */
const inlined = 'zod'
const processes = 'dist/engine/local/model-process'
/**
 * Small modules that nearly every entry point loads. They become one chunk, because an app waits for each
 * file.
 */
const sharedModules = [
  'errors',
  'units',
  'options/check',
  'diagnostics/channels',
  'engine/(events|request|request-input)',
  'engine/local/ipc/(available-cores|card-selection|framing|library-version|missing-engine|runtime-dir|process-config)',
  'engine/local/supervisor/process-environment',
  'engine/(request-limits|settle-all)',
  'engine/wire/.*',
  'dialects/(authorize-operator|check-mount|health/index|metrics/index|table|admin/.*)',
  'http/(body|guard|message|public-address|respond|route|stall-timeout)',
  'llm',
  'limits/(bucket|demand|headers|memory|reservation)',
  'accounts/(keys|tenants|usage)/tables',
  '(batches|response-store)/tables',
  'response-store/response-data',
  'running-calls/.*',
  'models/ollama-store/.*',
  'models/registry/(guarded-fetch|proxy)',
  'options.*',
  'storage/(migrations|open)',
  'util/(process-report|run-concurrently|wait-queue|with-timeout)',
]
const shared = new RegExp(`dist/(${sharedModules.join('|')})\\.js$`)

const root = fileURLToPath(new URL('..', import.meta.url))
const core = join(root, 'packages/core')
const [into, ...names] = process.argv.slice(2)
const stage = mkdtempSync(join(tmpdir(), 'pack-'))
const stagedCore = join(stage, 'core')
try {
  for (const name of names) await (name === 'core' ? stageCore() : stageOther(name))
  const folders = names.map((name) => join(stage, name))
  const packed = execFileSync('npm', ['pack', ...folders, '--silent', '--pack-destination', into], {
    shell: process.platform === 'win32',
  })
  for (const file of packed.toString().trim().split('\n')) process.stdout.write(`${resolve(into, file)}\n`)
} finally {
  rmSync(stage, { recursive: true })
}

/** Copies what the tarball contains, with the README for the registry's page. */
function stageOther(name) {
  const from = join(root, 'packages', name)
  const { files } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'))
  for (const path of ['package.json', 'LICENSE', ...files])
    cpSync(join(from, path), join(stage, name, path), { recursive: true })
  stageReadme(name)
}

function stageReadme(name) {
  // Set it when the repository has an address, such as `https://git.example/modelmount/blob/main`.
  const { config } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const text = readFileSync(join(root, 'packages', name, 'README.md'), 'utf8')
  writeFileSync(join(stage, name, 'README.md'), toRegistryReadme(text, `packages/${name}`, config.filesUrl))
}

async function stageCore() {
  const manifest = JSON.parse(readFileSync(join(core, 'package.json'), 'utf8'))
  delete manifest.dependencies[inlined]
  mkdirSync(stagedCore)
  writeFileSync(join(stagedCore, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  cpSync(join(core, 'LICENSE'), join(stagedCore, 'LICENSE'))
  stageReadme('core')
  cpSync(join(root, 'node_modules', inlined, 'LICENSE'), join(stagedCore, 'dist', `LICENSE.${inlined}`))
  const entryPoints = Object.values(manifest.exports).filter((entryPoint) => entryPoint.types)
  for (const file of declarationsFrom(entryPoints.map(({ types }) => join(core, types))))
    cpSync(file, join(stagedCore, relative(core, file)))

  const external = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })
  // Three bundles, because the app, its model processes and the threads of SQLite share no objects. Code finds
  // other files relative to its bundle.
  const names = entryPoints.map((entryPoint) => entryPoint.default.replace(/^\.\/dist\/|\.js$/g, ''))
  await bundle('dist', names, external)
  await bundle(processes, ['main', ...startedIn(join(core, processes))], external)
  await bundle('dist/storage/sqlite', ['worker'], external)
}

async function bundle(folder, entries, external) {
  const input = Object.fromEntries(entries.map((name) => [name, join(core, folder, `${name}.js`)]))
  const build = await rolldown({ input, external, platform: 'node', onLog: refuse })
  const codeSplitting = { groups: [{ name: 'shared', test: shared }] }
  await build.write({ dir: join(stagedCore, folder), codeSplitting })
}

/** The given declaration files, and all that they import. */
function declarationsFrom(files, found = new Set()) {
  for (const file of files) {
    if (found.has(file)) continue
    found.add(file)
    const imports = readFileSync(file, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)\.(?:ts|js)['"]/g)
    declarationsFrom(
      Array.from(imports, ([, path]) => join(dirname(file), `${path}.d.ts`)),
      found,
    )
  }
  return found
}

/** Names of the files that the code of the folder starts as workers or processes. */
function startedIn(folder) {
  const files = readdirSync(folder).filter((file) => file.endsWith('.js'))
  const code = files.map((file) => readFileSync(join(folder, file), 'utf8')).join('\n')
  return Array.from(code.matchAll(/new URL\('\.\/([^']+)\.js', import\.meta\.url\)/g), ([, name]) => name)
}

function refuse(_level, { message }) {
  throw new Error(message)
}
