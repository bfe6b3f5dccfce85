/** Ends the running calls of an API key when any process revokes the key. */
import type { Keys } from '../../accounts/keys/keys.ts'
import type { CallStep } from '../step.ts'

export const createRevocationStep = (keys: Pick<Keys, 'onRevoked'>): CallStep => ({
  name: 'revocation',
  before(call) {
    const { caller, kind } = call
    if (kind === 'admin' || kind === 'storage' || !caller?.key) return
    call.stopWatching = keys.onRevoked(caller.key.id, (error) => call.end(error))
  },
  after(call) {
    call.stopWatching?.()
    call.stopWatching = undefined
  },
})
