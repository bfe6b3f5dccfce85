/** Worker thread of the native process: renders templates and tokenizes texts with llama.cpp. */
import { parentPort } from 'node:worker_threads'
import type { TokenizeJob, TokenizeResult } from './isolated-tokenizer.ts'
import { openNativeTemplates } from './llama/native-templates.ts'
import { openNativeTokenizer } from './llama/native-tokenizer.ts'
import { maxPromptLength, type NativeJob, type NativeResult } from './render-job.ts'

let templates: ReturnType<typeof openNativeTemplates> | undefined
let tokenizer: ReturnType<typeof openNativeTokenizer> | undefined

parentPort?.on('message', async (job: NativeJob | TokenizeJob) => {
  parentPort?.postMessage('text' in job ? await tokenize(job) : await fill(job))
})

async function fill({ source, variables }: NativeJob): Promise<NativeResult> {
  try {
    templates ??= openNativeTemplates()
    const text = (await templates)?.(source, variables)
    return text === undefined || text.length > maxPromptLength ? {} : { text }
  } catch {
    return {}
  }
}

async function tokenize({ modelPath, text, parseSpecial }: TokenizeJob): Promise<TokenizeResult> {
  // One process serves one model.
  tokenizer ??= openNativeTokenizer(modelPath)
  const tokenizeText = await tokenizer.catch((cause) => String(cause))
  if (typeof tokenizeText === 'string') {
    tokenizer = undefined
    return { error: tokenizeText, isTextAtFault: false }
  }
  try {
    return { tokens: tokenizeText(text, parseSpecial) }
  } catch (cause) {
    return { error: String(cause), isTextAtFault: true }
  }
}
