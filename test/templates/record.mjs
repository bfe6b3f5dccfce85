/**
 * Records the prompts of llama.cpp's renderer: all templates of its release with all conversations.
 * Usage: `node test/templates/record.mjs`, on Linux with x64, with `g++` and `git`.
 *
 * Compiles `render.cpp` against the headers in node-llama-cpp's source bundle, and links it with the library
 * in node-llama-cpp's binaries. Both are of the same release.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import { bosToken, eosToken, library, readTemplates, recordedAt, requests, withSources } from './release.mjs'

const maxOutputBytes = 64 * 1024 * 1024

function compile(sources) {
  const binaries = join(dirname(library), '@node-llama-cpp/linux-x64/bins/linux-x64')
  const renderer = join(sources, 'render')
  execFileSync(
    process.env.CXX ?? 'g++',
    [
      '-std=c++17',
      ...['common', 'include', 'ggml/include', 'vendor'].map((folder) => `-I${join(sources, folder)}`),
      fileURLToPath(new URL('./render.cpp', import.meta.url)),
      ...['-o', renderer, '-rdynamic', '-Wl,--allow-shlib-undefined', `-Wl,-rpath,${binaries}`],
      join(binaries, 'libllama-common.so'),
    ],
    { stdio: 'inherit' },
  )
  return renderer
}

function record(sources) {
  const templates = [...readTemplates(sources)]
  const jobs = templates.flatMap(([, template]) =>
    requests.map((request) => ({
      template,
      request,
      bos: bosToken,
      eos: eosToken,
      now: recordedAt.getTime() / 1_000,
    })),
  )
  const { stdout, status, error } = spawnSync(compile(sources), {
    input: jobs.map((job) => `${JSON.stringify(job)}\n`).join(''),
    env: { ...process.env, TZ: 'UTC' },
    maxBuffer: maxOutputBytes,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  if (status !== 0) throw new Error(`The renderer ended with status ${status}.`, { cause: error })
  const replies = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  return Object.fromEntries(
    templates.map(([name], index) => [
      name,
      replies.slice(index * requests.length, (index + 1) * requests.length),
    ]),
  )
}

const prompts = withSources(['common', 'include', 'ggml/include', 'vendor', 'models/templates'], record)
const json = JSON.stringify(prompts)
const params = {
  [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
  [constants.BROTLI_PARAM_SIZE_HINT]: json.length,
}
writeFileSync(new URL('./prompts.json.br', import.meta.url), brotliCompressSync(json, { params }))
