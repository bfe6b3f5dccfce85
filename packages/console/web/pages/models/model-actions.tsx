/** Loads and deletes a model. */
import { useQuery, useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { request } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Confirm } from '../../components/confirm.tsx'
import { useNotify } from '../../components/notices.tsx'
import { findModel, loadedQuery, modelsKey } from '../../llm/models.ts'
import { LoadDialog } from './load-dialog.tsx'
import { UnloadButton } from './unload-button.tsx'

export interface ModelActionsProps {
  readonly model: string
  readonly isSmall?: boolean
  /** The built-in model cannot be deleted. */
  readonly isBuiltIn: boolean
  readonly onDeleted?: () => void
}

export function ModelActions({ model, isSmall = false, isBuiltIn, onDeleted }: ModelActionsProps) {
  const [open, setOpen] = useState<'load' | 'delete' | undefined>()
  const loaded = findModel(useQuery(loadedQuery).data, model)
  const close = (): void => setOpen(undefined)
  return (
    <>
      {loaded ? (
        // In the list, the table of models in memory has the button.
        !isSmall && <UnloadButton model={model} />
      ) : (
        <Button isSmall={isSmall} aria-label={`Load ${model}`} onClick={() => setOpen('load')}>
          Load
        </Button>
      )}
      {!isBuiltIn && (
        <Button
          isSmall={isSmall}
          kind={isSmall ? 'plain' : 'caution'}
          {...(isSmall && { icon: 'trash' as const })}
          isTextHidden={isSmall}
          aria-label={`Delete ${model}`}
          onClick={() => setOpen('delete')}
        >
          Delete
        </Button>
      )}
      {open === 'load' && <LoadDialog model={model} onClose={close} />}
      {open === 'delete' && <DeleteModel model={model} onClose={close} onDeleted={onDeleted} />}
    </>
  )
}

function DeleteModel({
  model,
  onClose,
  onDeleted,
}: {
  readonly model: string
  readonly onClose: () => void
  readonly onDeleted: (() => void) | undefined
}) {
  const client = useQueryClient()
  const notify = useNotify()
  return (
    <Confirm
      title={`Delete ${model}?`}
      action="Delete model"
      onClose={onClose}
      onConfirm={async () => {
        await request('llm/api/delete', { method: 'DELETE', json: { model } })
        notify(`Deleted ${model}.`)
        onDeleted?.()
        await client.invalidateQueries({ queryKey: modelsKey })
      }}
    >
      <p>
        Its files are removed from the disk of the app, except for those that other models share. Calls that
        name it fail afterwards.
      </p>
    </Confirm>
  )
}
