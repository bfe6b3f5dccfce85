/** Shows the secret of a key once. The page keeps it only while this dialog is open. */
import { useSession } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions, DialogBody } from '../../components/dialog.tsx'
import { Icon } from '../../components/icon.tsx'
import { CopyButton } from '../../components/text/copy-button.tsx'

export interface SecretDialogProps {
  readonly title: string
  readonly secret: string
  readonly onClose: () => void
}

export function SecretDialog({ title, secret, onClose }: SecretDialogProps) {
  const { apiUrl } = useSession()
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
        {apiUrl !== undefined && (
          <div>
            <p class="muted">Base URLs for clients:</p>
            <dl class="pairs">
              <dt>OpenAI</dt>
              <dd class="code">{apiUrl}/v1</dd>
              <dt>Anthropic, Ollama</dt>
              <dd class="code">{apiUrl}</dd>
            </dl>
          </div>
        )}
      </DialogBody>
      <DialogActions>
        <Button onClick={onClose}>Done</Button>
      </DialogActions>
    </Dialog>
  )
}
