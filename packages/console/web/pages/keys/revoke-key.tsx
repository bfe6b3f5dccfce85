/** Revokes a key. */
import { admin, read } from '../../api/client.ts'
import type { ApiKey } from '../../api/types.ts'
import { Confirm } from '../../components/confirm.tsx'
import { useNotify } from '../../components/notices.tsx'
import { useKeyChanged } from './queries.ts'

export function RevokeKey({ of: key, onClose }: { readonly of: ApiKey; readonly onClose: () => void }) {
  const [keyChanged, notify] = [useKeyChanged(), useNotify()]
  const revoke = async (): Promise<void> => {
    keyChanged(await read(admin.POST('/keys/{id}/revoke', { params: { path: { id: key.id } } })))
    notify('Key revoked.')
  }
  return (
    <Confirm title={`Revoke “${key.name}”?`} action="Revoke key" onConfirm={revoke} onClose={onClose}>
      <p>
        Its calls end now, and programs that use it get error 401. Its sessions in this console end as well.
      </p>
      <p>A revoked key stays in the list, and cannot be used again.</p>
    </Confirm>
  )
}
