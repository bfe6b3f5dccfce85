/**
 * Runs the parts of `npm run test:long` and writes their results to REPORT.md.
 * Usage: npm run test:long [-- part…], with the parts of test/suites.ts.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir, totalmem } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const parts = [
  ...['kills', 'kills-in-sqlite', 'kills-in-postgres', 'batches-in-sqlite', 'batches-in-postgres'],
  ...[
    'random',
    'storms',
    'tools',
    'mounts',
    'packaging',
    'examples',
    'agents',
    'peers',
    'upstreams',
    'fleet',
    'gpu',
    'operations',
  ],
]
const root = fileURLToPath(new URL('../..', import.meta.url))
const reportFile = new URL('REPORT.md', import.meta.url)
const wanted = process.argv.length > 2 ? process.argv.slice(2) : parts
const unknown = wanted.filter((part) => !parts.includes(part))
if (unknown.length > 0) {
  process.stderr.write(`Unknown part: ${unknown.join(', ')}. The parts are ${parts.join(', ')}.\n`)
  process.exit(2)
}

const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
const [{ model } = { model: 'unknown processor' }] = cpus()
const machine = `${cpus().length} × ${model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform}, Node ${process.version}`

/** Runs a part, and returns its section of the report. */
function run(part) {
  const folder = mkdtempSync(join(tmpdir(), 'long-'))
  const json = join(folder, 'result.json')
  // The sections of earlier parts do not count as changes.
  const isClean = git('status', '--porcelain', '--', '.', ':!test/long/REPORT.md') === ''
  const changes = isClean ? '' : ', with uncommitted changes'
  const commit = `${git('rev-parse', '--short', 'HEAD')}${changes}`
  const date = new Date().toISOString().slice(0, 10)
  try {
    const { status } = spawnSync('npx', ['vitest', 'run', `--outputFile.json=${json}`], {
      cwd: root,
      env: { ...process.env, MODELMOUNT_LONG: part },
      stdio: 'inherit',
    })
    if (status !== 0) process.exitCode = 1
    const { testResults } = JSON.parse(readFileSync(json, 'utf8'))
    return [
      `Date: ${date}. Commit: ${commit}. Machine: ${machine}. Result: ${status === 0 ? 'passed' : 'failed'}.`,
      '',
      '| Suite | Passed | Failed | Skipped | Seconds |',
      '| --- | ---: | ---: | ---: | ---: |',
      ...testResults.map(rowOf).sort(),
      ...testResults.flatMap(({ assertionResults }) =>
        assertionResults.flatMap(({ title, meta }) =>
          meta.report ? ['', `${title}:`, '', meta.report] : [],
        ),
      ),
      ...tableOf(testResults.flatMap(({ assertionResults }) => assertionResults)),
    ].join('\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function rowOf({ name, startTime, endTime, assertionResults }) {
  const count = (isCounted) => assertionResults.filter(({ status }) => isCounted(status)).length
  const passed = count((status) => status === 'passed')
  const failed = count((status) => status === 'failed')
  const skipped = assertionResults.length - passed - failed
  const seconds = Math.round((endTime - startTime) / 1_000)
  return `| ${relative(root, name)} | ${passed} | ${failed} | ${skipped} | ${seconds} |`
}

/** The outcome of each client in each situation, from its passed tests. An empty cell was not tried. */
function tableOf(assertionResults) {
  const cells = assertionResults.flatMap(({ status, meta }) =>
    status === 'passed' && meta.cell ? [meta.cell] : [],
  )
  if (cells.length === 0) return []
  const situations = [...new Set(cells.map(({ situation }) => situation))]
  const row = (texts) => `| ${texts.join(' | ')} |`
  const rows = [...new Set(cells.map(({ client }) => client))].sort().map((client) => {
    const own = cells.filter((cell) => cell.client === client)
    return row([
      client,
      ...situations.map((name) => own.find(({ situation }) => situation === name)?.outcome ?? ''),
    ])
  })
  return ['', row(['Client', ...situations]), row(['---', ...situations.map(() => '---')]), ...rows]
}

/** Sections of the report by part. */
function readSections() {
  const [, ...sections] = readFileSync(reportFile, 'utf8').split(/^## /m)
  return new Map(
    sections.map((section) => {
      const [part = '', ...lines] = section.split('\n')
      return [part, lines.join('\n').trim()]
    }),
  )
}

for (const part of wanted) {
  const section = run(part)
  const sections = readSections().set(part, section)
  const texts = parts.map((name) => `## ${name}\n\n${sections.get(name) ?? 'Not run yet.'}\n`)
  writeFileSync(
    reportFile,
    `# Last run of \`npm run test:long\`\n\n\`test/long/run.mjs\` writes this file.\n\n${texts.join('\n')}`,
  )
}
