/** Asks for higher limits for the viewer's own key. */
import { useMutation, useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import type { Limits } from '../api/types.ts'
import { Button } from '../components/button.tsx'
import { Dialog, DialogActions, DialogBody } from '../components/dialog.tsx'
import { TextAreaField } from '../components/form/field.tsx'
import { Form, FormError, fieldError } from '../components/form/form.tsx'
import { useNotify } from '../components/notices.tsx'
import { formatCount } from '../format/numbers.ts'
import { LimitFields } from './limit-fields.tsx'
import { type LimitTexts, parseLimitTexts } from './limit-form.ts'
import { askForLimits, limitRequestsKey } from './limit-requests.ts'

export interface AskDialogProps {
  /** The limits that apply now, as far as they are known. */
  readonly current: Limits
  readonly onClose: () => void
}

export function AskDialog({ current, onClose }: AskDialogProps) {
  const [texts, setTexts] = useState<LimitTexts>({})
  const [reason, setReason] = useState('')
  const [isChecked, setIsChecked] = useState(false)
  const [client, notify] = [useQueryClient(), useNotify()]
  const { limits, errors } = parseLimitTexts(texts)
  const asking = useMutation({
    mutationFn: (wanted: Limits) => askForLimits(wanted, reason),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: limitRequestsKey })
      notify('Request sent.')
      onClose()
    },
  })
  const isEmpty = limits === undefined && Object.keys(errors).length === 0
  const submit = (): void => {
    setIsChecked(true)
    if (limits !== undefined && Object.keys(errors).length === 0) asking.mutate(limits)
  }
  return (
    <Dialog title="Ask for higher limits" onClose={onClose} isWide>
      <Form onSubmit={submit} isBusy={asking.isPending} label="Higher limits">
        <DialogBody>
          <p class="muted">Fill in the limits to change. An administrator approves or refuses the request.</p>
          <LimitFields
            texts={texts}
            onChange={setTexts}
            errorOf={(path) =>
              (isChecked ? errors[path] : undefined) ?? fieldError(asking.error, `limits.${path}`)
            }
            placeholderOf={(name) => {
              const now = current[name]
              return now === undefined ? 'Unchanged' : `Now ${formatCount(now)}`
            }}
          />
          <TextAreaField
            label="Reason"
            hint="What you need the limits for."
            value={reason}
            onChange={setReason}
            error={fieldError(asking.error, 'reason')}
            maxLength={2_000}
          />
          {isChecked && isEmpty && (
            <p class="field-error" role="alert">
              Fill in at least one limit.
            </p>
          )}
          <FormError error={asking.error} params={['limits', 'reason']} />
        </DialogBody>
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isBusy={asking.isPending}>
            Send request
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  )
}
