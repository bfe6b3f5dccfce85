/** Asks before an action that cannot be undone. */
import { useMutation } from '@tanstack/preact-query'
import type { ComponentChildren } from 'preact'
import { Button } from './button.tsx'
import { Dialog, DialogActions, DialogBody } from './dialog.tsx'
import { ErrorMessage } from './error-message.tsx'

export interface ConfirmProps {
  /** The question, such as `Revoke key "Build server"?`. */
  readonly title: string
  /** What happens. */
  readonly children: ComponentChildren
  /** The verb on the button, such as `Revoke key`. */
  readonly action: string
  /** The other button. @default 'Cancel' */
  readonly dismiss?: string
  /** @default true */
  readonly isDangerous?: boolean
  readonly onConfirm: () => Promise<unknown>
  /** Called after success, and when the viewer cancels. */
  readonly onClose: () => void
}

export function Confirm(props: ConfirmProps) {
  const { title, children, action, dismiss = 'Cancel', isDangerous = true, onConfirm, onClose } = props
  const confirmation = useMutation({ mutationFn: onConfirm, onSuccess: onClose })
  return (
    <Dialog title={title} onClose={onClose}>
      <DialogBody>
        {children}
        {confirmation.error && <ErrorMessage error={confirmation.error} />}
      </DialogBody>
      <DialogActions>
        <Button onClick={onClose}>{dismiss}</Button>
        <Button
          kind={isDangerous ? 'danger' : 'primary'}
          isBusy={confirmation.isPending}
          onClick={() => confirmation.mutate()}
        >
          {action}
        </Button>
      </DialogActions>
    </Dialog>
  )
}
