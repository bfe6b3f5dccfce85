// Compares greedy answers of the built-in model with those of llama-server, token by token.
import { parseArgs } from 'node:util'
import { modelPath } from '@modelmount/tiny-model'
import { print, printTable } from './support/measure.mjs'
import { questions } from './support/questions.mjs'
import { serve } from './support/serve.mjs'

const { values: options } = parseArgs({
  options: {
    /** URL of a llama-server that has the built-in model loaded, such as http://127.0.0.1:8080. */
    against: { type: 'string' },
    threads: { type: 'string', default: '1' },
    /** Maximum tokens per answer. */
    tokens: { type: 'string', default: '128' },
  },
})
if (!options.against)
  throw new Error(`Missing option: --against http://127.0.0.1:8080, a llama-server that serves ${modelPath}`)
const theirUrl = options.against.replace(/\/$/, '')
const limit = Number(options.tokens)

const server = await serve({ model: modelPath, threads: options.threads, context: 2048 })
try {
  report(await compareAll(questions()))
} finally {
  await server.stop()
}

async function compareAll(prompts) {
  const results = []
  for (const question of prompts) {
    const result = compare(question, await ours(question), await theirs(question))
    if (result.prompt === -1 && result.answer !== -1) result.atOnce = await evaluateAtOnce(result)
    results.push(result)
  }
  return results
}

function compare(question, mine, other) {
  const prompt = firstDifference(mine.prompt, other.prompt)
  const answer = firstDifference(mine.answer, other.answer)
  return { question, mine, other, prompt, answer, isEqual: prompt === -1 && answer === -1 }
}

/**
 * Lets llama-server evaluate all tokens before the difference as one prompt, and returns its log
 * probabilities of both tokens. Their change shows the size of rounding errors.
 */
async function evaluateAtOnce({ mine, other, answer }) {
  const again = await complete([...other.prompt, ...other.answer.slice(0, answer)], 1)
  return logprobsOf(again.completion_probabilities[0], mine.answer[answer], other.answer[answer])
}

function report(results) {
  const equal = results.filter(({ isEqual }) => isEqual)
  const longest = Math.max(...results.map(({ mine }) => mine.prompt.length))
  const answerTokens = results.reduce((sum, { mine }) => sum + mine.answer.length, 0)
  print(`## Greedy answers of the built-in model, --threads ${options.threads}\n`)
  print(
    `${results.length} prompts of up to ${longest} tokens, ${answerTokens} answer tokens at temperature 0.`,
  )
  print(`${equal.length} of ${results.length} answers are equal, token by token.\n`)
  const rows = results
    .filter(({ isEqual }) => !isEqual)
    .map(({ question, mine, other, prompt, answer, atOnce = '' }) => [
      `${question.slice(0, 40).replaceAll('|', '\\|')} (${mine.prompt.length} tokens)`,
      prompt === -1 ? 'no' : `at ${prompt}: ${mine.prompt[prompt]} / ${other.prompt[prompt]}`,
      answer === -1 ? 'no' : `at ${answer}: ${mine.answer[answer]} / ${other.answer[answer]}`,
      logprobsOf(other.logprobs[answer], mine.answer[answer], other.answer[answer]),
      atOnce,
    ])
  if (rows.length > 0)
    printTable(
      [
        'prompt',
        'prompt differs',
        'answer differs (ours / theirs)',
        "llama-server's logprobs of both tokens",
        'the same, after all earlier tokens in one prompt',
      ],
      rows,
    )
}

/** Log probabilities of the tokens. A tiny distance between them means that rounding decides. */
function logprobsOf({ top_logprobs: top } = { top_logprobs: [] }, ...tokens) {
  return tokens.map((token) => top.find(({ id }) => id === token)?.logprob.toFixed(4) ?? '–').join(' / ')
}

/** Tokens of the prompt and of the answer, including the token that ended the answer. */
async function ours(prompt) {
  const answer = await post(`${server.url}/api/generate`, {
    model: 'tiny-chat',
    prompt,
    stream: false,
    think: false,
    options: { temperature: 0, num_predict: limit },
  })
  const { context, prompt_eval_count: length } = answer
  return { prompt: context.slice(0, length), answer: context.slice(length) }
}

async function theirs(content) {
  const { prompt } = await post(`${theirUrl}/apply-template`, {
    messages: [{ role: 'user', content }],
    chat_template_kwargs: { enable_thinking: false },
  })
  const { tokens } = await post(`${theirUrl}/tokenize`, {
    content: prompt,
    add_special: true,
    parse_special: true,
  })
  const answer = await complete(tokens, limit)
  return { prompt: tokens, answer: answer.tokens, logprobs: answer.completion_probabilities }
}

function complete(prompt, most) {
  return post(`${theirUrl}/completion`, {
    prompt,
    temperature: 0,
    n_predict: most,
    n_probs: 10,
    return_tokens: true,
    cache_prompt: false,
  })
}

async function post(url, body) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (response.ok) return response.json()
  throw new Error(`${url} responded with ${response.status}: ${await response.text()}`)
}

function firstDifference(left, right) {
  const index = left.findIndex((token, at) => token !== right[at])
  return index === -1 && left.length !== right.length ? left.length : index
}
