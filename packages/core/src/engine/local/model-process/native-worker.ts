/** Worker thread of the native process: renders templates and tokenizes texts with llama.cpp. */
import type { TokenizeJob, TokenizeResult } from './isolated-tokenizer.ts'
import { openNativeTemplates } from './llama/native-templates.ts'
import { openNativeTokenizer } from './llama/native-tokenizer.ts'
import { maxPromptLength, type NativeJob, type NativeResult } from './render-job.ts'
import { serveJobs } from './workers/serve-jobs.ts'

let templates: ReturnType<typeof openNativeTemplates> | undefined
let tokenizer: ReturnType<typeof openNativeTokenizer> | undefined

serveJobs(
  async (job: NativeJob | TokenizeJob) => ('text' in job ? tokenize(job) : fill(job)),
  (job) => ('text' in job ? openTokenizer(job) : openTemplates()).catch(() => {}),
)

const openTemplates = () => (templates ??= openNativeTemplates())

/** One process serves one model. */
const openTokenizer = ({ modelPath }: TokenizeJob) => (tokenizer ??= openNativeTokenizer(modelPath))

async function fill({ source, variables }: NativeJob): Promise<NativeResult> {
  try {
    const text = (await openTemplates())?.(source, variables)
    return text === undefined || text.length > maxPromptLength ? {} : { text }
  } catch {
    return {}
  }
}

async function tokenize(job: TokenizeJob): Promise<TokenizeResult> {
  const tokenizeText = await openTokenizer(job).catch((cause) => String(cause))
  if (typeof tokenizeText === 'string') {
    tokenizer = undefined
    return { error: tokenizeText, isTextAtFault: false }
  }
  try {
    return { tokens: tokenizeText(job.text, job.parseSpecial) }
  } catch (cause) {
    return { error: String(cause), isTextAtFault: true }
  }
}
