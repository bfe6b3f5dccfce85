/** Lets the built-in model answer, in a model process like any other model. */
import { createLlm, type LlmOptions } from '@modelmount/core'
import { withFlags } from '../flags.ts'
import { shortDuration } from '../format/human.ts'
import { type Finding, findingsOf } from './finding.ts'

const { ok, problem } = findingsOf('answer')

const timeoutMs = 60_000

/** @param local how models are loaded */
export async function checkAnswer(local: LlmOptions['local']): Promise<Finding> {
  const llm = await createLlm({ models: [], local })
  const startedAt = performance.now()
  try {
    await llm.chat('Hello', { model: 'tiny', maxTokens: 4, signal: AbortSignal.timeout(timeoutMs) })
    return ok(`The built-in model answered within ${shortDuration(performance.now() - startedAt)}`)
  } catch (error) {
    return problem(`The built-in model does not answer: ${withFlags((error as Error).message)}`)
  } finally {
    await llm.close()
  }
}
