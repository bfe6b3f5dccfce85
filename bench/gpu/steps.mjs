// The steps of run.sh, on the machine with the card. Each finished step leaves a mark, so that a later call begins with
// the next one.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { print } from '../support/measure.mjs'
import { makeModel } from './gguf.mjs'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** After this time, no step begins, and the command of the running step is stopped. */
    minutes: { type: 'string', default: '9' },
    /** `cuda`, or `cpu` to try the scripts on a machine without a card. */
    backend: { type: 'string', default: 'cuda' },
    rounds: { type: 'string', default: '3' },
    /** Id of the first of 32 tokens that are plain words, for `--words` of the engine's benchmark. @default for Qwen */
    words: { type: 'string', default: '9481' },
  },
})
const { backend } = options
const endsAt = performance.now() + Number(options.minutes) * 60_000
const work = process.env.MODELMOUNT_GPU_WORK
const results = process.env.OUT ?? join(work, 'results')
const tree = fileURLToPath(new URL('../..', import.meta.url))
const llama = join(tree, 'node_modules/node-llama-cpp/llama')
const isCuda = backend === 'cuda'
/** The folder in which node-llama-cpp looks for an addon that was built on this machine. */
const built = join(llama, 'localBuilds', isCuda ? 'linux-x64-cuda' : 'linux-x64')
const binaries = join(built, 'Release')
for (const folder of [results, join(work, 'done'), join(work, 'models')])
  mkdirSync(folder, { recursive: true })

const [small, large] = isCuda ? ['1b', '8b'] : ['tiny', 'tiny']
const [many, few] = isCuda ? [128, 4] : [8, 2]
const streams = isCuda ? '1,8,32,128' : '1,8'
/** Answers of models below 64 MiB have eight times as many tokens. */
const context = isCuda ? 1_024 : 2_048
const [short, long] = isCuda ? [2_000, 16_000] : [200, 600]

const steps = {
  build,
  models: () => {
    for (const shape of new Set([small, large]))
      makeModel({ tokenizer: join(work, 'tokenizer.gguf'), shape, path: modelFile(shape) })
  },
  card: () => describeCard(),
  [`streams-${small}`]: () =>
    compare(small, many, context, ['--only', 'short,streams', '--streams', streams]),
  [`prompts-${large}`]: () =>
    compare(large, few, long + context, ['--only', 'prompts', '--prompts', `${short},${long}`]),
  [`fair-${large}`]: () => compare(large, few, short + context, ['--only', 'fair', '--prompts', `${short}`]),
  ...(small !== large && {
    [`streams-${large}`]: () =>
      compare(large, many, context, ['--only', 'short,streams', '--streams', streams]),
  }),
  report,
}

/** The time of this call is over. */
class TimeIsUp extends Error {}

try {
  for (const name of positionals.length > 0 ? positionals : Object.keys(steps)) await take(name)
} catch (error) {
  if (!(error instanceof TimeIsUp)) throw error
  print(`${error.message} Call it again.`)
  process.exitCode = 3
}

async function take(name) {
  const step = steps[name]
  if (!step) throw new Error(`There is no step "${name}". The steps are ${Object.keys(steps).join(', ')}.`)
  const mark = join(work, 'done', name)
  if (positionals.length === 0 && existsSync(mark)) return
  if (performance.now() > endsAt) throw new TimeIsUp(`Stopped before ${name}.`)
  print(`# ${name}`)
  const startedAt = performance.now()
  await step()
  writeFileSync(mark, '')
  print(`${name} took ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`)
}

/** Builds the addon and llama-server in one tree, so that both have the same kernels. Ninja goes on after a stop. */
async function build() {
  const { release } = JSON.parse(readFileSync(join(llama, 'binariesGithubRelease.json'), 'utf8'))
  const folder = join(work, `build-${backend}`)
  const define = {
    CMAKE_BUILD_TYPE: 'Release',
    CMAKE_JS_INC: join(tree, 'node-headers'),
    NLC_VARIANT: isCuda ? `cuda.${release}` : release,
    NLC_CURRENT_PLATFORM: 'linux-x64',
    NLC_TARGET_PLATFORM: 'linux-x64',
    CMAKE_C_FLAGS: '-w',
    CMAKE_CXX_FLAGS: '-w',
    GGML_NATIVE: 'ON',
    GGML_OPENMP: 'OFF',
    GGML_CCACHE: 'OFF',
    GGML_BUILD_NUMBER: '1',
    LLAMA_BUILD_NUMBER: '1',
    LLAMA_BUILD_TOOLS: 'ON',
    LLAMA_BUILD_SERVER: 'ON',
    LLAMA_USE_PREBUILT_UI: 'OFF',
    LLAMA_OPENSSL: 'OFF',
    ...(isCuda && { GGML_CUDA: 'ON', CMAKE_CUDA_ARCHITECTURES: 'native' }),
  }
  await run('cmake', [
    ...['-G', 'Ninja', '-S', llama, '-B', folder],
    ...Object.entries(define).map(([name, value]) => `-D${name}=${value}`),
  ])
  await run('ninja', ['-C', folder, 'llama-addon', 'llama-server'])
  mkdirSync(binaries, { recursive: true })
  for (const from of [folder, join(folder, 'bin'), join(folder, 'llama.cpp/bin')]) {
    if (!existsSync(from)) continue
    for (const file of readdirSync(from))
      if (/\.(so|node)$|^llama-server$/.test(file)) copyFileSync(join(from, file), join(binaries, file))
  }
  const llamaCpp = { repo: 'ggml-org/llama.cpp', release }
  const buildOptions = {
    customCmakeOptions: {},
    progressLogs: false,
    platform: 'linux',
    platformInfo: { name: 'Linux', version: '' },
    arch: 'x64',
    llamaCpp,
  }
  writeFileSync(
    join(binaries, '_nlcBuildMetadata.json'),
    JSON.stringify({ buildOptions: { ...buildOptions, gpu: isCuda && 'cuda' } }),
  )
  writeFileSync(join(built, 'buildDone.status'), '')
}

/** Fails if the engine would compute on the processor. */
function describeCard() {
  const doctor = execFileSync(process.execPath, [join(tree, 'packages/cli/bin/modelmount.js'), 'doctor'], {
    encoding: 'utf8',
  })
  print(doctor)
  writeFileSync(join(results, 'machine.txt'), doctor)
  if (isCuda && !/CUDA/i.test(doctor)) throw new Error('The engine does not find the card.')
}

/** Runs the engine's benchmark against llama-server with the same model. */
async function compare(shape, slots, context, args) {
  const model = modelFile(shape)
  const layers = isCuda ? '999' : '0'
  const port = 18_090
  const theirs = spawn(
    join(binaries, 'llama-server'),
    [
      ...['-m', model, '--host', '127.0.0.1', '--port', `${port}`, '-t', '1', '-cram', '0', '-ngl', layers],
      ...['-np', `${slots}`, '-c', `${slots * context}`],
    ],
    { stdio: 'ignore' },
  )
  try {
    await isHealthy(`http://127.0.0.1:${port}/health`, theirs)
    const name = `${args[1].split(',').at(-1)}-${shape}`
    await run(process.execPath, [
      ...[join(tree, 'bench/engine.mjs'), '--model', model, '--against', `http://127.0.0.1:${port}`],
      ...[
        '--against-pid',
        `${theirs.pid}`,
        '--threads',
        '1',
        '--parallel',
        `${slots}`,
        '--context',
        `${context}`,
      ],
      ...['--rounds', options.rounds, '--words', options.words, '--json', join(results, `${name}.json`)],
      ...(isCuda ? ['--gpu-layers', 'max'] : []),
      ...args,
    ])
  } finally {
    theirs.kill()
  }
}

async function isHealthy(url, server) {
  for (;;) {
    const { ok } = await fetch(url).catch(() => ({ ok: false }))
    if (ok) return
    if (server.exitCode !== null) throw new Error(`llama-server ended with code ${server.exitCode}.`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

/** Writes the rows of all comparisons to one page. */
function report() {
  const pages = readdirSync(results)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => {
      const { options, rows } = JSON.parse(readFileSync(join(results, file), 'utf8'))
      return [
        `## ${file.slice(0, -'.json'.length)}: ${options.parallel} slots of ${options.context} tokens`,
        '',
        '|  | ours | llama-server | ours / theirs | control |',
        '| --- | --: | --: | --: | --: |',
        ...rows.map(
          ({ label, ours, theirs, ratio, noise }) =>
            `| ${[label, middle(ours), middle(theirs), ratio?.toFixed(3) ?? '–', noise.toFixed(3)].join(' | ')} |`,
        ),
      ].join('\n')
    })
  writeFileSync(join(results, 'gpu.md'), `${pages.join('\n\n')}\n`)
}

function middle(values) {
  const value = values.toSorted((a, b) => a - b)[values.length >> 1]
  return value === null || value === undefined ? '–' : value.toFixed(value < 10 ? 2 : 1)
}

function modelFile(shape) {
  return join(work, 'models', `${shape}.q4_0.gguf`)
}

/** Ends with all processes that it has started when the time of this call is over. */
async function run(command, args) {
  const child = spawn(command, args, { stdio: 'inherit', detached: true })
  let isStopped = false
  const timer = setTimeout(
    () => {
      isStopped = true
      process.kill(-child.pid)
    },
    Math.max(0, endsAt - performance.now()),
  )
  const [code] = await once(child, 'exit').finally(() => clearTimeout(timer))
  if (isStopped) throw new TimeIsUp(`Stopped ${command}.`)
  if (code !== 0) throw new Error(`${command} ended with code ${code}.`)
}
