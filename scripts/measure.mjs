// Prints measures of the source tree as a Markdown table: node scripts/measure.mjs [another checkout]
// With another checkout, the table compares both. Each checkout needs `npm ci` and `npm run build`, because
// the script runs the built-in model to count the model look-ups of a call.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { dirname, join, normalize, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const here = fileURLToPath(new URL('..', import.meta.url))
const checkouts = [...process.argv.slice(2, 3), here]

function measure(root) {
  const core = join(root, 'packages/core/src')
  const sources = listSources(core)
  const trees = new Map(sources.map((file) => [file, parse(file)]))
  const folders = countBy(sources.map((file) => dirname(file)))
  const types = countBy([...trees.values()].flatMap(declaredTypes))
  const long = [...trees].flatMap(([file, tree]) =>
    longFunctions(tree).map((text) => `${relative(core, file)} ${text}`),
  )
  return {
    'import cycles': countCycles(sources),
    "files in core's root": folders.get(core) ?? 0,
    'files in the largest folder': Math.max(...folders.values()),
    'type names declared more than once': [...types.values()].filter((count) => count > 1).length,
    'async iterators between socket and client': readIterators(root),
    'model look-ups per chat (OpenAI, Anthropic, Ollama)': countLookups(root),
    'functions over 60 lines': long.length,
    'phrases that the style guide avoids': countAvoidedPhrases(root),
    'lines of code outside tests': countCode(
      [...['core', 'express', 'fastify', 'koa', 'nest', 'cli']].flatMap((name) =>
        listSources(join(root, 'packages', name, 'src')),
      ),
    ),
    'README lines': lines(join(root, 'README.md')).length - 1,
    ...Object.fromEntries(
      topFolders(core).map((name) => [
        `code lines in ${name}`,
        countCode(sources.filter((file) => folderOf(core, file) === name)),
      ]),
    ),
    long,
  }
}

function printTable(columns) {
  const last = columns.at(-1)
  const names = [...new Set(columns.flatMap((column) => Object.keys(column)))].filter(
    (name) => name !== 'long',
  )
  const rows = names.map(
    (name) => `| ${[name, ...columns.map((column) => column[name] ?? '')].join(' | ')} |`,
  )
  const titles = columns.length > 1 ? ['measure', 'before', 'now'] : ['measure', 'now']
  process.stdout.write(
    `| ${titles.join(' | ')} |\n|${titles.map(() => ' --- |').join('')}\n${rows.join('\n')}\n`,
  )
  if (last.long.length > 0)
    process.stdout.write(`\nFunctions over 60 lines:\n${last.long.map((text) => `- ${text}`).join('\n')}\n`)
}

function listSources(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((path) => join(folder, path))
    .filter(
      (path) =>
        path.endsWith('.ts') && !/\.test(-d)?\.ts$/.test(path) && !path.includes(`${sep}fixtures${sep}`),
    )
}

const lines = (file) => readFileSync(file, 'utf8').split('\n')
const parse = (file) => ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
const topFolders = (core) =>
  [...readdirSync(core)].filter((name) => statSync(join(core, name)).isDirectory()).sort()
const folderOf = (core, file) => relative(core, file).split(sep)[0]

function countBy(keys) {
  const counts = new Map()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}

/** Counts groups of files that import each other, including type imports. */
function countCycles(sources) {
  const known = new Set(sources)
  const imports = new Map(
    sources.map((file) => [
      file,
      [...readFileSync(file, 'utf8').matchAll(/from '(\.[^']+)'|import\('(\.[^']+)'\)/g)]
        .map(([, from, dynamic]) => normalize(join(dirname(file), from ?? dynamic)))
        .filter((target) => known.has(target)),
    ]),
  )
  // Tarjan's strongly connected components.
  const state = new Map()
  const stack = []
  let cycles = 0
  const visit = (file) => {
    const own = { index: state.size, low: state.size, isOpen: true }
    state.set(file, own)
    stack.push(file)
    for (const target of imports.get(file)) {
      const other = state.get(target) ?? visit(target)
      if (other.isOpen) own.low = Math.min(own.low, other.low)
    }
    if (own.low === own.index) {
      let size = 0
      for (let member; member !== file; size++) {
        member = stack.pop()
        state.get(member).isOpen = false
      }
      if (size > 1) cycles++
    }
    return own
  }
  for (const file of sources) if (!state.has(file)) visit(file)
  return cycles
}

/**
 * Names of declared types. Constants are omitted, because a schema and its inferred type have the same name.
 */
const declaredTypes = (tree) =>
  tree.statements.flatMap((node) =>
    ts.isTypeAliasDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isClassDeclaration(node) ||
    ts.isEnumDeclaration(node)
      ? [node.name?.text ?? 'default']
      : [],
  )

function longFunctions(tree) {
  const found = []
  const visit = (node) => {
    if (ts.isFunctionLike(node) && node.body) {
      const first = tree.getLineAndCharacterOfPosition(node.getStart()).line
      const count = tree.getLineAndCharacterOfPosition(node.end).line - first + 1
      if (count > 60) found.push(`line ${first + 1}: ${count} lines`)
    }
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return found
}

/** Counts the iterators that the events of a streamed chat pass through, in a fixed list of files. */
function readIterators(root) {
  const files = [
    'util/read-ahead.ts',
    'engine/read-ahead.ts',
    'keys/running.ts',
    'generate.ts',
    'calls/generate.ts',
    'calls/generation.ts',
    'dialects/openai/render.ts',
    'http/streams.ts',
  ]
  const iterators =
    /async function\*|AsyncIterator<\w+>(?: \{| =)|class \w+(?:<\w+>)? implements AsyncItera\w+/g
  return files.reduce((sum, file) => {
    const path = join(root, 'packages/core/src', file)
    if (!existsSync(path)) return sum
    const text = readFileSync(path, 'utf8')
    return sum + (text.match(iterators)?.length ?? Number(text.includes('): AsyncIterableIterator<')))
  }, 0)
}

const avoidedPhrases =
  /\b(nobody|somebody|anybody|whoever|held to|let in|is said|are said|by itself|of its own|so long)\b|\/\*\* (Of|Who|Whose|What|So|It|They) /g

function countAvoidedPhrases(root) {
  const tracked = execFileSync('git', ['ls-files', '*.ts', '*.md', '*.mjs'], { cwd: root, encoding: 'utf8' })
    .trim()
    .split('\n')
  return tracked
    .filter((file) => !file.startsWith('test/golden') && file !== 'scripts/measure.mjs')
    .reduce(
      (sum, file) => sum + (readFileSync(join(root, file), 'utf8').match(avoidedPhrases)?.length ?? 0),
      0,
    )
}

/** Counts lines that contain code, without blank lines and lines of comments alone. */
function countCode(files) {
  return files.reduce((sum, file) => {
    const text = readFileSync(file, 'utf8')
    const starts = new Set()
    const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
    const visit = (node) => {
      if (
        node.getChildCount(tree) === 0 &&
        node.kind !== ts.SyntaxKind.EndOfFileToken &&
        node.kind < ts.SyntaxKind.FirstJSDocNode
      ) {
        const first = tree.getLineAndCharacterOfPosition(node.getStart(tree)).line
        const last = tree.getLineAndCharacterOfPosition(node.end).line
        for (let line = first; line <= last; line++) starts.add(line)
      }
      for (const child of node.getChildren(tree)) if (!ts.isJSDoc(child)) visit(child)
    }
    visit(tree)
    return sum + starts.size
  }, 0)
}

function countLookups(root) {
  try {
    return execFileSync(process.execPath, [fileURLToPath(import.meta.url), '--lookups', root], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return 'not measured: build first'
  }
}

/** Counts `ModelStore.get` while each API answers one chat of the built-in model. */
async function printLookups(root) {
  const dist = join(root, 'packages/core/dist')
  const { ModelStore } = await import(join(dist, 'models/store.js'))
  const { createLlm, routesFor } = await import(join(dist, 'index.js'))
  const { toNodeHandler } = await import(join(dist, 'http/index.js'))
  let count = 0
  const { get } = ModelStore.prototype
  ModelStore.prototype.get = function (...given) {
    count++
    return get.apply(this, given)
  }
  const llm = await createLlm({ models: [] })
  const server = createServer(toNodeHandler(routesFor(), llm)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  await llm.chat('Hello', { maxTokens: 4 })
  const counts = []
  for (const path of ['/v1/chat/completions', '/v1/messages', '/api/chat']) {
    count = 0
    const answer = await fetch(`http://127.0.0.1:${server.address().port}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tiny', max_tokens: 4, messages: [{ role: 'user', content: 'Hello' }] }),
    })
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    await answer.text()
    counts.push(count)
  }
  server.close()
  await llm.close()
  process.stdout.write(counts.join(', '))
}

if (process.argv[2] === '--lookups') await printLookups(process.argv[3])
else printTable(checkouts.map(measure))
