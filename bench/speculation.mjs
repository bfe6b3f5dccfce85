// Compares answers whose tokens are guessed from repeated passages with the same answers without guesses. A seed
// switches guesses off. With one thread, a seed changes nothing else about a call that decodes alone.
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { modelPath } from '@modelmount/tiny-model'
import { describeMachine, median, print, printProgress, printTable } from './support/measure.mjs'
import { questions } from './support/questions.mjs'
import { serve } from './support/serve.mjs'

const { values: options } = parseArgs({
  options: {
    /** Model file. Copied JSON is measured instead of copied sentences. @default the built-in model */
    model: { type: 'string' },
    rounds: { type: 'string', default: '7' },
  },
})
const model = options.model ?? modelPath

const items = (count) => ({
  type: 'array',
  minItems: count,
  maxItems: count,
  items: {
    type: 'object',
    properties: {
      identifier: { type: 'integer', minimum: 0, maximum: 9 },
      availability: { enum: ['available immediately', 'available next week', 'not available'] },
      deliveryAddress: {
        type: 'object',
        properties: {
          country: { const: 'Switzerland' },
          postalCode: { type: 'integer', minimum: 0, maximum: 9 },
        },
        required: ['country', 'postalCode'],
      },
    },
    required: ['identifier', 'availability', 'deliveryAddress'],
  },
})
const sentences = [
  'The quick brown fox jumps over the lazy dog',
  'The box of Ada is red and the box of Grace is blue',
  'A small lantern stands near the river and a bird sings in the garden',
]
const copies = options.model
  ? { 'JSON of a schema': [{ prompt: 'List the articles.', format: items(8), num_predict: 400 }] }
  : {
      'repeated sentences': sentences.map((text) => ({
        prompt: `Repeat the following sentence. "${text}"`,
        num_predict: 128,
      })),
    }
const measures = {
  ...copies,
  'text at temperature 1': ['Ada', 'Grace', 'Omar'].map((name) => ({
    prompt: `Tell me a short story about ${name}.`,
    temperature: 1,
    num_predict: 128,
  })),
  ...(!options.model && {
    stories: ['Ada', 'Grace', 'Omar', 'Mia'].map((name) => ({
      prompt: `Tell me a short story about ${name}.`,
      num_predict: 256,
    })),
  }),
}

const server = await serve({ model, threads: 1, context: 2048 })
try {
  const name = options.model ? basename(options.model, '.gguf') : 'tiny'
  print(`## Guesses from repeated passages: ${basename(model)}, one thread, one stream\n`)
  await describeMachine()
  await measureSpeed(name)
  if (!options.model) await compareAnswers(name)
} finally {
  await server.stop()
}

async function measureSpeed(name) {
  const sides = ['without', 'with', 'control']
  const rows = []
  for (const [what, calls] of Object.entries(measures)) {
    const speeds = { without: [], with: [], control: [] }
    for (let round = 0; round <= Number(options.rounds); round++) {
      for (let turn = 0; turn < sides.length; turn++) {
        const side = sides[(round + turn) % sides.length]
        let [tokens, seconds] = [0, 0]
        for (const call of calls) {
          const { eval_count, eval_duration } = await ask(name, call, side !== 'with')
          tokens += eval_count
          seconds += eval_duration / 1e9
        }
        // The first round warms up.
        if (round > 0) speeds[side].push(tokens / seconds)
      }
      printProgress(`${what}: round ${round} of ${options.rounds}`)
    }
    const ratios = (side) => speeds[side].map((speed, index) => speed / speeds.without[index])
    rows.push([
      what,
      median(speeds.without).toFixed(0),
      median(speeds.with).toFixed(0),
      median(ratios('with')).toFixed(2),
      median(ratios('control')).toFixed(2),
    ])
  }
  print('')
  printTable(['answers', 'tokens/s without', 'tokens/s with', 'ratio', 'control'], rows)
}

async function compareAnswers(name) {
  const prompts = questions()
  const different = []
  for (const prompt of prompts) {
    const call = { prompt, num_predict: 128 }
    const [plain, guessed] = [await ask(name, call, true), await ask(name, call, false)]
    const at = plain.context.findIndex((token, index) => token !== guessed.context[index])
    if (at !== -1 || plain.context.length !== guessed.context.length)
      different.push([
        prompt.slice(0, 40),
        String(at),
        await logprobsAt(name, prompt, at - plain.prompt_eval_count),
      ])
  }
  print(
    `\n${prompts.length - different.length} of ${prompts.length} greedy answers are equal, token by token.\n`,
  )
  if (different.length > 0)
    printTable(['prompt', 'differs at', 'logprobs of the two likeliest tokens'], different)
}

/** A tiny distance between both means that rounding decides. */
async function logprobsAt(name, content, index) {
  const { choices } = await post('/v1/chat/completions', {
    ...{ model: name, seed: 1, temperature: 0, max_tokens: 128, logprobs: true, top_logprobs: 2 },
    messages: [{ role: 'user', content }],
  })
  const [{ logprobs }] = choices
  return logprobs.content[index]?.top_logprobs.map(({ logprob }) => logprob.toFixed(4)).join(' / ') ?? 'end'
}

function ask(name, { prompt, format, temperature = 0, num_predict }, isSeeded) {
  return post('/api/generate', {
    ...{ model: name, prompt, stream: false, think: false, ...(format && { format }) },
    options: { temperature, num_predict, ...(isSeeded && { seed: 1 }) },
  })
}

async function post(path, body) {
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (response.ok) return response.json()
  throw new Error(`${path} responded with ${response.status}: ${await response.text()}`)
}
