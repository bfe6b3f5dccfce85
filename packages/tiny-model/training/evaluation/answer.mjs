// Answers prompts with a GGUF file in llama.cpp, greedily: node answer.mjs MODEL PROMPTS ANSWERS [SEQUENCES]
// PROMPTS is a JSON list of lists of token ids, and ANSWERS becomes a list of { text, isStopped }.
import { readFile, writeFile } from 'node:fs/promises'
import { getLlama } from 'node-llama-cpp'

const [modelPath, promptsPath, answersPath, sequences = '4'] = process.argv.slice(2)
const maxTokens = 400

const prompts = JSON.parse(await readFile(promptsPath, 'utf8'))
const llama = await getLlama({ gpu: false, build: 'never', maxThreads: 1, logLevel: 'error' })
const model = await llama.loadModel({ modelPath })
const longest = Math.max(...prompts.map((prompt) => prompt.length))
const context = await model.createContext({
  contextSize: longest + maxTokens + 8,
  sequences: Number(sequences),
  threads: 1,
})

const answers = []
let next = 0
async function answerPrompts(sequence) {
  while (next < prompts.length) {
    const at = next++
    const tokens = []
    let isStopped = true
    await sequence.clearHistory()
    for await (const token of sequence.evaluate(prompts[at], { temperature: 0, yieldEogToken: true })) {
      if (model.isEogToken(token)) break
      tokens.push(token)
      isStopped = tokens.length < maxTokens
      if (!isStopped) break
    }
    answers[at] = { text: model.detokenize(tokens, true), isStopped }
  }
}

await Promise.all(Array.from({ length: Number(sequences) }, () => answerPrompts(context.getSequence())))
await writeFile(answersPath, JSON.stringify(answers))
await llama.dispose()
