// Tokenizes texts as a model process does, but with one vocabulary after the other. A test sends the jobs.
import {
  importLibrary,
  startLibrary,
} from '../../packages/core/dist/engine/local/model-process/llama/library.js'
import { openVocabulary } from '../../packages/core/dist/engine/local/model-process/llama/vocabulary.js'
import {
  CpuBudget,
  TenantCpu,
} from '../../packages/core/dist/engine/local/model-process/workers/cpu-budget.js'
import { Turns } from '../../packages/core/dist/engine/local/model-process/workers/turns.js'

const llama = await startLibrary(await importLibrary(), { gpu: false, maxThreads: 1, vramPadding: 0 })
let opened

async function open(modelPath) {
  if (opened?.modelPath === modelPath) return opened.vocabulary
  await opened?.model.dispose()
  const model = await llama.loadModel({ modelPath, vocabOnly: true })
  opened = {
    modelPath,
    model,
    vocabulary: openVocabulary(model, modelPath, 4_096, { steps: 0 }, new Turns()),
  }
  return opened.vocabulary
}

process.on('message', async ({ modelPath, text }) => {
  const { signal } = new AbortController()
  const budget = new CpuBudget(new TenantCpu(), { tenant: '', weight: 1, background: false, signal })
  try {
    const vocabulary = await open(modelPath)
    const tokens = await vocabulary.tokenize(text, budget, { stopAfter: Number.POSITIVE_INFINITY })
    process.send({ tokens: tokens.length })
  } catch ({ name, code, message }) {
    process.send({ error: { name, code, message } })
  }
})
