/** Worker thread that builds grammars. */
import { LlmError } from '../../../errors.ts'
import type { OutputConstraint } from '../../../grammar/constraint.ts'
import { buildOutputGrammar } from '../../../grammar/output-grammar.ts'
import { toWireError } from '../../wire/wire-error.ts'
import type { GrammarResult } from './grammar-builder.ts'
import { serveJobs } from './workers/serve-jobs.ts'

/** Error for a constraint whose nesting exhausts the call stack. */
const schemaTooDeep = (cause: RangeError): LlmError =>
  new LlmError(
    'invalid_request',
    'The output constraint is nested too deeply. Use a flatter schema.',
    { issue: 'value' },
    { cause },
  )

serveJobs(buildGrammar)

function buildGrammar(constraint: OutputConstraint): GrammarResult {
  try {
    return { source: buildOutputGrammar(constraint) }
  } catch (error) {
    return { error: toWireError(error instanceof RangeError ? schemaTooDeep(error) : error) }
  }
}
