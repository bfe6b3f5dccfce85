// Packs what a machine without a network needs to measure its graphics card: Node, the built packages with their
// dependencies, and llama.cpp's sources. Usage: npm run build && node bench/gpu/pack.mjs --donor model.gguf
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { checkOut, library } from '../../test/templates/release.mjs'
import { print } from '../support/measure.mjs'
import { keepTokenizer } from './gguf.mjs'

const { values: options } = parseArgs({
  options: {
    /** A model whose tokenizer the benchmark's models get. Its weights are not packed. */
    donor: { type: 'string' },
    /** @default bench/gpu/packed, which Git ignores */
    into: { type: 'string' },
  },
})
if (!options.donor) throw new Error('Missing option: --donor model.gguf, for its tokenizer')

/** The limit of what a session on a borrowed machine may carry, besides the repository. */
const maxBytes = 60e6
const root = fileURLToPath(new URL('../..', import.meta.url))
const into = options.into ?? join(root, 'bench/gpu/packed')
/** Folders of llama.cpp that the builds of the addon and of llama-server need. */
const sourceFolders = [
  ...['CMakeLists.txt', 'LICENSE', 'cmake', 'common', 'ggml', 'include', 'src', 'vendor', 'scripts/*.cmake'],
  ...[
    'tools',
    ':!tools/ui/src',
    ':!tools/ui/static',
    ':!tools/ui/tests',
    ':!tools/mtmd/*.jpeg',
    ':!tools/mtmd/*.mp3',
  ],
]

rmSync(into, { recursive: true, force: true })
mkdirSync(into, { recursive: true })
const stage = mkdtempSync(join(tmpdir(), 'gpu-pack-'))
try {
  mkdirSync(join(stage, 'node/bin'), { recursive: true })
  copyFileSync(process.execPath, join(stage, 'node/bin/node'))
  compress('node', join(stage, 'node'))

  const tree = join(stage, 'tree')
  for (const folder of dependenciesOf('packages/cli')) copyPackage(folder, tree)
  for (const file of trackedFiles('bench')) copyInto(tree, file)
  copyInto(tree, 'package.json')
  cpSync(findHeaders(), join(tree, 'node-headers'), { recursive: true })
  compress('tree', tree)

  const sources = join(stage, 'llama.cpp')
  mkdirSync(sources)
  checkOut(sources, sourceFolders)
  rmSync(join(sources, '.git'), { recursive: true })
  compress('llama.cpp', sources)

  keepTokenizer(options.donor, join(into, 'tokenizer.gguf'))
} finally {
  rmSync(stage, { recursive: true })
}
const files = ['node.tar.xz', 'tree.tar.xz', 'llama.cpp.tar.xz', 'tokenizer.gguf']
const sizes = files.map((file) => statSync(join(into, file)).size)
for (const [index, file] of files.entries())
  print(`${(sizes[index] / 1e6).toFixed(1).padStart(6)} MB  ${file}`)
const total = sizes.reduce((sum, size) => sum + size, 0)
print(`${(total / 1e6).toFixed(1).padStart(6)} MB  together, of at most ${maxBytes / 1e6}`)
if (total > maxBytes) process.exitCode = 1

function compress(name, folder) {
  execFileSync('tar', ['-C', folder, '-cJf', join(into, `${name}.tar.xz`), '.'], {
    env: { ...process.env, XZ_OPT: '-6 -T2' },
  })
}

/** The package and what it needs at run time, as folders from the root. Reads the lock file of npm. */
function dependenciesOf(start) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const found = new Set()
  const visit = (folder) => {
    if (found.has(folder)) return
    const { link, resolved, dependencies = {}, peerDependencies = {} } = packages[folder]
    found.add(folder)
    if (link) return visit(resolved)
    // The optional peers of our packages are for other hosts.
    const names = Object.keys(
      folder.startsWith('packages/') ? dependencies : { ...dependencies, ...peerDependencies },
    )
    for (const name of names) {
      const dependency = findFrom(folder, name, packages)
      if (dependency) visit(dependency)
    }
  }
  visit(start)
  return [...found]
}

/** Where Node finds a package from a folder. Undefined for an optional one that is not installed. */
function findFrom(folder, name, packages) {
  for (let parent = folder; ; parent = dirname(parent)) {
    const found = join(parent, 'node_modules', name)
    if (packages[found]) return found
    if (parent === '.') return undefined
  }
}

function copyPackage(folder, tree) {
  const from = join(root, folder)
  // TypeScript is a peer dependency that nothing loads.
  if (folder === 'node_modules/typescript' || !existsSync(from)) return
  const skipped = [
    'node_modules',
    ...(folder.startsWith('packages/') ? ['src', 'web', 'training'] : []),
    ...(`${from}/`.startsWith(`${library}/`) ? ['gitRelease.bundle', 'bins', 'localBuilds'] : []),
  ]
  const filter = (path) => path === from || !skipped.includes(basename(path))
  cpSync(from, join(tree, folder), { recursive: true, verbatimSymlinks: true, filter })
}

function copyInto(tree, file) {
  mkdirSync(dirname(join(tree, file)), { recursive: true })
  copyFileSync(join(root, file), join(tree, file))
}

function trackedFiles(folder) {
  return execFileSync('git', ['-C', root, 'ls-files', folder], { encoding: 'utf8' }).trim().split('\n')
}

/** Headers of Node's native interface, which come with most installations of Node. */
function findHeaders() {
  const headers = join(dirname(dirname(process.execPath)), 'include/node')
  if (existsSync(join(headers, 'node_api.h'))) return headers
  throw new Error(
    `There is no ${headers}/node_api.h. Run this with a Node that has its headers, such as from its tar archive.`,
  )
}
