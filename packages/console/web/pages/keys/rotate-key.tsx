/** Gives a key another secret. */
import { useMutation } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { admin, read } from '../../api/client.ts'
import type { ApiKey } from '../../api/types.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions, DialogBody } from '../../components/dialog.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { SelectField } from '../../components/form/field.tsx'
import { Time } from '../../components/text/time.tsx'
import { useKeyChanged } from './queries.ts'
import { SecretDialog } from './secret-dialog.tsx'

const graceOptions = [
  ['0s', 'They stop at once'],
  ['1h', 'For 1 hour'],
  ['24h', 'For 24 hours'],
  ['7d', 'For 7 days'],
  ['30d', 'For 30 days'],
] as const

export function RotateKey({ of: key, onClose }: { readonly of: ApiKey; readonly onClose: () => void }) {
  const [grace, setGrace] = useState<string>('24h')
  const keyChanged = useKeyChanged()
  const rotation = useMutation({
    mutationFn: () =>
      read(admin.POST('/keys/{id}/rotate', { params: { path: { id: key.id } }, body: { grace } })),
    onSuccess: (rotated) => keyChanged(rotated.key),
    // The cache of mutations would keep the secret otherwise.
    gcTime: 0,
  })
  if (rotation.data) {
    const { key: rotated, secret } = rotation.data
    return (
      <SecretDialog title="Key rotated" secret={secret} of={rotated} onClose={onClose}>
        <p>
          {rotated.previousSecretExpiresAt === undefined ? (
            'Previous secrets are not valid any more.'
          ) : (
            <>
              Previous secrets stay valid until <Time at={rotated.previousSecretExpiresAt} />.
            </>
          )}
        </p>
      </SecretDialog>
    )
  }
  return (
    <Dialog title={`Rotate “${key.name}”`} onClose={onClose}>
      <DialogBody>
        <p>The key gets another secret. Its settings, limits and usage stay.</p>
        <SelectField
          label="Previous secrets stay valid"
          value={grace}
          onChange={setGrace}
          options={graceOptions}
        />
        {rotation.error && <ErrorMessage error={rotation.error} />}
      </DialogBody>
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="primary" isBusy={rotation.isPending} onClick={() => rotation.mutate()}>
          Rotate key
        </Button>
      </DialogActions>
    </Dialog>
  )
}
