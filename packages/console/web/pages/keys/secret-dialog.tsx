/** Shows the secret of a key once. The page keeps it only while this dialog is open. */
import type { ComponentChildren } from 'preact'
import type { ApiKey } from '../../api/types.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions, DialogBody } from '../../components/dialog.tsx'
import { Icon } from '../../components/icon.tsx'
import { CopyButton } from '../../components/text/copy-button.tsx'
import { FirstUse } from './first-use.tsx'

export interface SecretDialogProps {
  readonly title: string
  readonly secret: string
  readonly of: ApiKey
  /** What else the viewer should know. */
  readonly children?: ComponentChildren
  readonly onClose: () => void
}

export function SecretDialog({ title, secret, of: key, children, onClose }: SecretDialogProps) {
  return (
    <Dialog title={title} onClose={onClose} isPersistent>
      <DialogBody>
        <div class="message warning">
          <Icon name="warning" />
          <p>Copy the secret now. Nobody can read it again.</p>
        </div>
        <div class="secret">
          <code data-secret>{secret}</code>
          <CopyButton text={secret} label="Copy secret" kind="primary" />
        </div>
        {children}
        <FirstUse of={key} />
      </DialogBody>
      <DialogActions>
        <Button onClick={onClose}>Done</Button>
      </DialogActions>
    </Dialog>
  )
}
