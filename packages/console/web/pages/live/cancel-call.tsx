/** Asks before a call is canceled. */

import { admin, read } from '../../api/client.ts'
import { ApiError } from '../../api/errors.ts'
import { Confirm } from '../../components/confirm.tsx'
import { useNotify } from '../../components/notices.tsx'
import type { LiveCall } from './live-calls.ts'

export function CancelCall({ call, onClose }: { readonly call: LiveCall; readonly onClose: () => void }) {
  const notify = useNotify()
  return (
    <Confirm
      title={`Cancel the call of ${call.model}?`}
      action="Cancel call"
      dismiss="Keep it running"
      onConfirm={async () => notify(await cancelCall(call.id))}
      onClose={onClose}
    >
      <p>The caller gets an error, after the text that was generated so far. This text is charged.</p>
    </Confirm>
  )
}

/** @returns what has happened */
async function cancelCall(id: string): Promise<string> {
  try {
    const { status } = await read(admin.POST('/calls/{id}/cancel', { params: { path: { id } } }))
    return status === 'canceled' ? 'Call canceled.' : 'Cancel requested. The process of the call ends it.'
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return 'The call had ended already.'
    throw error
  }
}
