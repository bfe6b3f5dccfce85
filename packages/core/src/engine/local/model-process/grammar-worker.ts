/** The worker thread in which grammars are made. */
import { parentPort } from 'node:worker_threads'
import { LlmError } from '../../../errors.ts'
import { type AnswerForm, answerGrammar } from '../../../grammar/output-grammar.ts'
import { toWire } from '../ipc/protocol.ts'
import type { GrammarResult } from './grammars.ts'

parentPort?.on('message', (form: AnswerForm) => {
  parentPort?.postMessage(make(form))
})

/** There is no more stack. */
const tooDeep = (cause: RangeError): LlmError =>
  new LlmError(
    'invalid_request',
    'What the answer is held to is nested too deeply.',
    { issue: 'value' },
    { cause },
  )

function make(form: AnswerForm): GrammarResult {
  try {
    return { source: answerGrammar(form) }
  } catch (error) {
    return { error: toWire(error instanceof RangeError ? tooDeep(error) : error) }
  }
}
