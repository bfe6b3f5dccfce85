/**
 * Checks what the caller may do, and removes load options that the caller may not choose. Authentication came before:
 * in the route or in the host app.
 */
import type { Access } from '../../accounts/auth/access.ts'
import { LlmError } from '../../errors.ts'
import type { Call, ModelRequest } from '../call.ts'
import type { CallStep } from '../step.ts'

export interface AuthoriseOptions extends Pick<Access, 'scopesOf'> {
  /** Whether spending is counted. */
  readonly hasLedger: boolean
}

export const createAuthoriseStep = ({ scopesOf, hasLedger }: AuthoriseOptions): CallStep => ({
  name: 'authorise',
  before(call) {
    const { caller, forwarded } = call
    // The host app itself may do everything.
    if (!caller) return
    // The other app has checked what its caller may do.
    if (forwarded) {
      call.requestedContextSize = forwarded.requestedContextSize
      return
    }
    if (caller.spendingLimit && !hasLedger) throw spendingNeedsDatabase()
    if (!scopesOf(caller).includes('models')) restrictLoading(call)
  },
})

/**
 * Callers share a loaded model. A caller without the scope `models` therefore cannot unload it, and its load
 * options are removed. Throws `permission`.
 */
function restrictLoading(call: Call): void {
  if (call.kind === 'unload') throw unloadNotAllowed()
  const sizes = call.requests.flatMap(({ load }) => load?.contextSize ?? [])
  if (sizes.length > 0) call.requestedContextSize = Math.max(...sizes)
  call.requests = call.requests.map(withoutLoadOptions)
}

const withoutLoadOptions = (request: ModelRequest): ModelRequest =>
  request.load ? { ...request, load: {} } : request

const unloadNotAllowed = (): LlmError =>
  new LlmError('permission', "To unload a model, a caller needs the scope 'models'.")

const spendingNeedsDatabase = (): LlmError =>
  new LlmError(
    'internal',
    'A caller with `spendingLimit` requires a database. In the app, set the option `database` of createLlm().',
    { setup: true },
  )
