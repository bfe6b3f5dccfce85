// Compares the log probabilities of our in-process engine with those of llama-server.
import { basename } from 'node:path'
import { parseArgs } from 'node:util'
import { createLlm } from '@modelmount/core'
import { modelPath } from '@modelmount/tiny-model'
import { print, printTable } from './support/measure.mjs'
import { questions } from './support/questions.mjs'

const { values: options } = parseArgs({
  options: {
    /** GGUF file of the model. */
    model: { type: 'string', default: modelPath },
    /** URL of a llama-server that has the same model loaded, such as http://127.0.0.1:8080. */
    against: { type: 'string' },
    threads: { type: 'string', default: '1' },
    /** Maximum tokens per answer. */
    tokens: { type: 'string', default: '64' },
  },
})
if (!options.against)
  throw new Error(
    `Missing option: --against http://127.0.0.1:8080, a llama-server that serves ${options.model}`,
  )
const theirUrl = options.against.replace(/\/$/, '')
const model = basename(options.model, '.gguf')
const limit = Number(options.tokens)
/** How many of the likeliest tokens are compared. */
const count = 5
/** Largest difference that is not listed, in natural logarithms. */
const tolerance = 0.02

const llm = await createLlm({
  models: options.model,
  local: { threads: Number(options.threads), contextSize: 2048 },
})
try {
  const results = []
  for (const question of questions()) {
    const prompt = await promptOf(question)
    const result = compare(await ours(prompt, limit), await theirs(prompt, limit))
    results.push({ question, ...result, again: await evaluateAtOnce(prompt, result) })
  }
  report(results)
} finally {
  await llm.close()
}

/**
 * Compares up to the first token that differs, inclusive. After it, the two answers have different contexts.
 */
function compare(mine, other) {
  const differs = mine.findIndex((token, at) => token.id !== other[at]?.id)
  const until = differs === -1 ? Math.min(mine.length, other.length) : differs + 1
  const distances = mine.slice(0, until).flatMap((token, at) => distancesOf(token, other[at], at))
  return { mine, other, distances, compared: until, differs }
}

/**
 * For positions with a large difference, both servers evaluate all earlier tokens as one prompt. That runs
 * other kernels, so the change in a server's own log probabilities shows the size of rounding errors.
 */
async function evaluateAtOnce(prompt, { mine, other, distances }) {
  const positions = new Set(distances.filter(isFar).map(({ at }) => at))
  const results = []
  for (const at of positions) {
    const before = [...prompt, ...mine.slice(0, at).map(({ id }) => id)]
    const [[left], [right]] = [await ours(before, 1), await theirs(before, 1)]
    if (!left || !right) continue
    results.push({ at, apart: distancesOf(left, right, at), theirOwn: distancesOf(other[at], right, at) })
  }
  return results
}

function isFar({ distance }) {
  return distance > tolerance
}

/**
 * Distances for all tokens that either side lists. A token that one side does not list counts as its least
 * likely one.
 */
function distancesOf(mine, other = { top: [] }, at) {
  const ids = new Set([...mine.top, ...other.top].map(({ id }) => id))
  return [...ids].map((id) => {
    const [left, right] = [mine, other].map(({ top }) => top.find((one) => one.id === id)?.logprob)
    const lowest = ({ top }) => top.at(-1)?.logprob ?? 0
    const distance = Math.abs((left ?? lowest(mine)) - (right ?? lowest(other)))
    return { at, id, left, right, distance, isShared: left !== undefined && right !== undefined }
  })
}

function report(results) {
  const all = results.flatMap(({ question, distances }) => distances.map((one) => ({ question, ...one })))
  const shared = all.filter(({ isShared }) => isShared)
  const positions = results.reduce((sum, { compared }) => sum + compared, 0)
  const different = results.filter(({ differs }) => differs !== -1)
  print(`## Logprobs of ${model}, --threads ${options.threads}\n`)
  print(
    `${results.length} prompts at temperature 0, ${positions} positions, the ${count} likeliest tokens of each.`,
  )
  print(`${different.length} answers differ in a token, and are compared up to that token.`)
  print(
    `Both servers list ${shared.length} of ${all.length} logprobs. The largest difference is ${largest(all)}.`,
  )
  const far = all.filter(isFar)
  print(`${far.length} differences are above ${tolerance}.`)
  const again = results.flatMap(({ question, again }) => again.map((one) => ({ question, ...one })))
  if (again.length === 0) return
  const apart = again.flatMap(({ question, apart }) => apart.map((one) => ({ question, ...one })))
  const theirOwn = again.flatMap(({ theirOwn }) => theirOwn)
  print(`For ${again.length} of these positions, both servers evaluated all earlier tokens as one prompt.`)
  print(
    `Then the largest difference is ${largest(apart)}, and ${apart.filter(isFar).length} are above ${tolerance}.`,
  )
  print(`This changed llama-server's own logprobs by up to ${largest(theirOwn)}.\n`)
  printDifferences('Tokens evaluated one by one', far)
  printDifferences('Tokens evaluated as one prompt', apart.filter(isFar))
}

function largest(distances) {
  return Math.max(...distances.map(({ distance }) => distance)).toFixed(6)
}

function printDifferences(title, distances) {
  print(`### ${title}: differences above ${tolerance}\n`)
  const name = (logprob) => logprob?.toFixed(4) ?? 'not listed'
  printTable(
    ['prompt', 'position', 'token', 'ours', 'theirs', 'difference'],
    distances.map(({ question, at, id, left, right, distance }) => [
      question.slice(0, 40).replaceAll('|', '\\|'),
      String(at),
      String(id),
      name(left),
      name(right),
      distance.toFixed(4),
    ]),
  )
}

/** The seed keeps the engine from reusing KV state that was evaluated in other pieces. */
async function ours(prompt, maxTokens) {
  const input = { kind: 'text', prompt: [prompt], template: false }
  const generation = await llm.generate(
    { model, input, maxTokens, sampling: { temperature: 0, seed: 1 }, logprobs: count },
    { signal: new AbortController().signal },
  )
  const tokens = []
  for await (const event of generation) tokens.push(...(event.logprobs ?? []))
  return tokens
}

/** Omits the token that ended the answer, because our engine does not report it. */
async function theirs(prompt, most) {
  const answer = await post('/completion', {
    prompt,
    temperature: 0,
    n_predict: most,
    n_probs: count,
    post_sampling_probs: false,
    cache_prompt: false,
  })
  const tokens = answer.completion_probabilities.map(({ id, top_logprobs: top }) => ({ id, top }))
  return answer.stop_type === 'eos' ? tokens.slice(0, -1) : tokens
}

async function promptOf(content) {
  const { prompt } = await post('/apply-template', {
    messages: [{ role: 'user', content }],
    chat_template_kwargs: { enable_thinking: false },
  })
  const { tokens } = await post('/tokenize', { content: prompt, add_special: true, parse_special: true })
  return tokens
}

async function post(path, body) {
  const response = await fetch(theirUrl + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (response.ok) return response.json()
  throw new Error(`${path} responded with ${response.status}: ${await response.text()}`)
}
