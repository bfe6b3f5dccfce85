/** Approves or refuses a request for higher limits, with a note for the requester. */
import { useMutation, useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import type { LimitRequest } from '../../api/types.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions, DialogBody } from '../../components/dialog.tsx'
import { TextAreaField } from '../../components/form/field.tsx'
import { Form, FormError, fieldError } from '../../components/form/form.tsx'
import { useNotify } from '../../components/notices.tsx'
import { decide, limitRequestsKey } from '../../limits/limit-requests.ts'
import { keysKey } from '../keys/queries.ts'
import { RequestChanges } from './request-changes.tsx'

export interface DecideDialogProps {
  readonly request: LimitRequest
  readonly kind: 'approve' | 'refuse'
  readonly onClose: () => void
}

export function DecideDialog({ request, kind, onClose }: DecideDialogProps) {
  const [note, setNote] = useState('')
  const [client, notify] = [useQueryClient(), useNotify()]
  const decision = useMutation({
    mutationFn: () => decide(request.id, kind, note),
    onSuccess: async () => {
      await Promise.all([
        client.invalidateQueries({ queryKey: limitRequestsKey }),
        client.invalidateQueries({ queryKey: keysKey }),
      ])
      notify(kind === 'approve' ? 'Request approved.' : 'Request refused.')
      onClose()
    },
  })
  const isApproval = kind === 'approve'
  return (
    <Dialog title={isApproval ? 'Approve the request?' : 'Refuse the request?'} onClose={onClose}>
      <Form onSubmit={() => decision.mutate()} isBusy={decision.isPending} label="Decision">
        <DialogBody>
          {isApproval ? (
            <div>
              <p>From its next call on, the limits of the key change:</p>
              <RequestChanges request={request} />
            </div>
          ) : (
            <p>The limits of the key stay as they are.</p>
          )}
          <TextAreaField
            label="Note (optional)"
            hint="The requester can read it."
            value={note}
            onChange={setNote}
            error={fieldError(decision.error, 'note')}
            maxLength={2_000}
          />
          <FormError error={decision.error} params={['note']} />
        </DialogBody>
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind={isApproval ? 'primary' : 'danger'} type="submit" isBusy={decision.isPending}>
            {isApproval ? 'Approve request' : 'Refuse request'}
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  )
}
