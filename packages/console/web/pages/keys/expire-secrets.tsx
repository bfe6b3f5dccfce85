/** Expires the previous secrets of a rotated key. */
import { admin, read } from '../../api/client.ts'
import type { ApiKey } from '../../api/types.ts'
import { Confirm } from '../../components/confirm.tsx'
import { useNotify } from '../../components/notices.tsx'
import { useKeyChanged } from './queries.ts'

export function ExpireSecrets({ of: key, onClose }: { readonly of: ApiKey; readonly onClose: () => void }) {
  const [keyChanged, notify] = [useKeyChanged(), useNotify()]
  const expire = async (): Promise<void> => {
    const call = { params: { path: { id: key.id } } }
    keyChanged(await read(admin.POST('/keys/{id}/expire-previous-secrets', call)))
    notify('Previous secrets expired.')
  }
  return (
    <Confirm
      title={`Expire the previous secrets of “${key.name}”?`}
      action="Expire previous secrets"
      onConfirm={expire}
      onClose={onClose}
    >
      <p>
        Programs that still use one get error 401. The sessions of the key in this console end, because they
        may have begun with one.
      </p>
    </Confirm>
  )
}
