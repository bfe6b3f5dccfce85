// Compares speed, fairness and cost of the local engine with another OpenAI-compatible server that has the
// same model.
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { ask, fingerprintOf, prompt, promptShape, toQuestion } from './support/ask.mjs'
import { isTinyModel, measures } from './support/engine-measures.mjs'
import { judge, report } from './support/engine-report.mjs'
import { IdleGuard } from './support/idle-guard.mjs'
import { describeMachine, print } from './support/measure.mjs'
import { takeRounds } from './support/rounds.mjs'
import { serve } from './support/serve.mjs'

const { values: options } = parseArgs({
  options: {
    /** URL of the other server, such as http://127.0.0.1:8080. */
    against: { type: 'string' },
    /** Process id of the other server: for its CPU time and memory, and for the idle guard. */
    'against-pid': { type: 'string' },
    model: { type: 'string' },
    threads: { type: 'string', default: '1' },
    parallel: { type: 'string', default: '8' },
    context: { type: 'string', default: '2048' },
    rounds: { type: 'string', default: '7' },
    /**
     * Id of the first of the 32 tokens that answers consist of. Without them, a model with random weights may
     * stop early.
     */
    words: { type: 'string', default: '300' },
    /** Numbers of streams, separated by commas. @default 1,2,4,8,16 */
    streams: { type: 'string' },
    /** Lengths of prompts in tokens, separated by commas. @default 100,500,1500 */
    prompts: { type: 'string' },
    /** Layers on graphics cards. @default what `modelmount serve` chooses */
    'gpu-layers': { type: 'string' },
    /** Names of measures, separated by commas. */
    only: { type: 'string' },
    /** File that receives all numbers. */
    json: { type: 'string' },
  },
})
const { against, model, threads, parallel, context } = options
if (!against || !model)
  throw new Error(
    'Missing options: --against http://127.0.0.1:8080 and --model file.gguf. That server must have the same model.',
  )

const { version } = createRequire(import.meta.url)('../packages/cli/package.json')
const isTiny = isTinyModel(model)
const named = toQuestion(model, Number(options.words))

const gpu = options['gpu-layers'] && { 'gpu-layers': options['gpu-layers'] }
const server = await serve({ model, threads, parallel, context, ...gpu })
try {
  const ours = { ...named, url: server.url, probe: server.probe, roots: [server.id] }
  const pid = options['against-pid'] && Number(options['against-pid'])
  const theirs = { ...named, url: against.replace(/\/$/, ''), roots: pid ? [pid] : undefined }
  const guard = new IdleGuard(theirs.roots)
  const chosen = choose(
    measures({
      isTiny,
      slots: Number(parallel),
      wordsFor: await sameWords(ours, theirs),
      counts: toNumbers(options.streams),
      lengths: toNumbers(options.prompts),
    }),
  )

  await describe(theirs, guard)
  const warm = (side) => ({ ...side, warmUp: () => ask(side, { prompt: prompt(8), tokens: 8 }) })
  const sides = { ours: warm(ours), theirs: warm(theirs), control: warm(ours) }
  const samples = await takeRounds(Number(options.rounds), chosen, sides, guard)
  const rows = judge(chosen, samples)
  report(rows, ['ours', 'theirs'])
  if (options.json) writeFileSync(options.json, JSON.stringify({ options, samples, rows }, null, 2))
} finally {
  await server.stop()
}

/** Returns the measures that `--only` names. `streams` selects `streams1`, `streams2` and so on. */
function choose(all) {
  if (!options.only) return all
  const only = options.only.split(',')
  const isChosen = (name) => only.includes(name) || only.includes(name.replace(/\d+$/, ''))
  const chosen = Object.entries(all).filter(([name]) => isChosen(name))
  if (chosen.length === 0) throw new Error(`--only takes: ${Object.keys(all).join(', ')}`)
  return Object.fromEntries(chosen)
}

/** Ascending, for a list such as `1,8`. */
function toNumbers(list) {
  return list
    ?.split(',')
    .map(Number)
    .sort((a, b) => a - b)
}

/** Returns a function from prompt tokens to words. Warns if the two servers count different tokens. */
async function sameWords(...sides) {
  const [ours, theirs] = [await promptShape(sides[0]), await promptShape(sides[1])]
  if (ours.frame !== theirs.frame || ours.perWord !== theirs.perWord)
    print(`WARNING: prompts differ in tokens: ${JSON.stringify({ ours, theirs })}`)
  return (tokens) => Math.round((tokens - ours.frame) / ours.perWord)
}

async function describe(theirs, guard) {
  const computing = `${threads} ${threads === '1' ? 'thread' : 'threads'}`
  print(`## ${basename(model)}, ${computing}, ${parallel} slots of ${context} tokens\n`)
  await describeMachine()
  print(
    `Modelmount ${version}; fingerprint of the other server: ${await fingerprintOf(theirs)}; ${options.rounds} rounds`,
  )
  if (Number(options.rounds) < 7) print('WARNING: fewer than seven rounds give no reliable result.')
  if (!guard.isOn)
    print('WARNING: the idle guard is off. It needs /proc and --against-pid. Run no other programs.')
  print('')
}
