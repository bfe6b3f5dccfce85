/** The worker thread in which grammars are made. */
import { parentPort } from 'node:worker_threads'
import { type AnswerForm, answerGrammar } from '../../../grammar/answer.ts'
import { toWire } from '../protocol.ts'
import type { GrammarResult } from './grammars.ts'

parentPort?.on('message', (form: AnswerForm) => {
  parentPort?.postMessage(make(form))
})

function make(form: AnswerForm): GrammarResult {
  try {
    return { source: answerGrammar(form) }
  } catch (error) {
    return { error: toWire(error) }
  }
}
