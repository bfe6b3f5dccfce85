// Compares several cluster workers on one model with one worker, and times an app that starts while the model
// is loaded.
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ask, prompt, toQuestion } from './support/ask.mjs'
import { isTinyModel, measures } from './support/engine-measures.mjs'
import { judge, report } from './support/engine-report.mjs'
import { IdleGuard } from './support/idle-guard.mjs'
import { describeMachine, print } from './support/measure.mjs'
import { commandOf, knowsProcesses, trees } from './support/processes.mjs'
import { takeRounds } from './support/rounds.mjs'
import { start } from './support/serve.mjs'

const { values: options } = parseArgs({
  options: {
    model: { type: 'string' },
    workers: { type: 'string', default: '4' },
    threads: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '7' },
    words: { type: 'string', default: '300' },
  },
})
const { model, workers, threads } = options
if (!model) throw new Error('Missing option: --model file.gguf')

const slots = 8
const file = fileURLToPath(new URL('support/app.mjs', import.meta.url))
const question = toQuestion(model, Number(options.words))
const one = await startApp(1)
const many = await startApp(Number(workers))
try {
  print(`## ${basename(model)}, ${workers} cluster workers, --threads ${threads}, ${slots} slots\n`)
  await describeMachine()
  // Connections go to the workers in turn, so all workers have the model after this.
  for (let call = 0; call < 2 * Number(workers); call++)
    for (const side of [one, many]) await ask(side, { prompt: prompt(8), tokens: 1 })
  printModelProcesses()

  const chosen = { streams: eightStreams(), restart: restart() }
  const sides = { ours: many, theirs: one, control: many }
  const guard = new IdleGuard([one.id, many.id])
  const samples = await takeRounds(Number(options.rounds), chosen, sides, guard)
  report(judge(chosen, samples), [`${workers} workers`, 'one worker'])
} finally {
  await Promise.all([one.stop(), many.stop()])
}

async function startApp(workers) {
  const local = { threads: Number(threads), contextSize: 2_048, parallel: slots, keepAlive: 'forever' }
  const app = await start([file, JSON.stringify({ workers, models: model, local })])
  return { ...app, ...question, roots: [app.id] }
}

/** The target is one model process for all apps of the machine. */
function printModelProcesses() {
  if (!knowsProcesses) return
  const count = trees([one.id, many.id]).filter((process) =>
    commandOf(process).some((part) => part.endsWith('/model-process/main.js')),
  ).length
  print(
    `${Number(workers) + 1} app processes, ${count} model ${count === 1 ? 'process' : 'processes'}, ${options.rounds} rounds\n`,
  )
}

function eightStreams() {
  const { run } = measures({ isTiny: isTinyModel(model), slots }).streams8
  return { rows: { all: { label: '8 streams, tokens/s including prompts', atLeast: 0.9 } }, run }
}

function restart() {
  const rows = { first: { label: 'first token after the start of an app, ms', oursAtMost: 500 } }
  const run = async (side) => {
    // The start of an app does not depend on the number of workers, so one side is enough.
    if (side === one) return {}
    const app = await startApp(0)
    try {
      const { times } = await ask(app, { prompt: prompt(8), tokens: 2 })
      return { first: times[0] - app.startedAt }
    } finally {
      await app.stop()
    }
  }
  return { rows, run }
}
