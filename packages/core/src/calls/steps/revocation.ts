/** Ends the running answers of an API key when any process revokes the key. */
import { setMaxListeners } from 'node:events'
import type { Keys } from '../../accounts/keys/keys.ts'
import type { CallStep } from '../step.ts'

export const createRevocationStep = (keys: Pick<Keys, 'onRevoked'>): CallStep => ({
  name: 'revocation',
  before(call) {
    const { caller, kind, signal } = call
    if (kind !== 'generate' || !caller?.key) return
    const controller = new AbortController()
    const abort = (): void => controller.abort()
    // Any number of calls may share a signal. Without this line, Node.js would warn of a leak.
    setMaxListeners(0, signal)
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    const unwatch = keys.onRevoked(caller.key.id, (error) => {
      call.endReason = error
      abort()
    })
    call.signal = controller.signal
    call.stopWatching = () => {
      signal.removeEventListener('abort', abort)
      unwatch()
    }
  },
  after(call) {
    call.stopWatching?.()
    call.stopWatching = undefined
  },
})
