/** Unloads a model from memory. */
import { useMutation, useQueryClient } from '@tanstack/preact-query'
import { request } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { useNotify } from '../../components/notices.tsx'
import { modelsKey } from '../../llm/models.ts'

/** No question before it: the next call loads the model again. */
export function UnloadButton({
  model,
  isSmall = false,
}: {
  readonly model: string
  readonly isSmall?: boolean
}) {
  const client = useQueryClient()
  const notify = useNotify()
  const unload = useMutation({
    mutationFn: () => request('llm/api/generate', { json: { model, keep_alive: 0, stream: false } }),
    onSuccess: () => {
      notify(`Unloaded ${model}.`)
      return client.invalidateQueries({ queryKey: modelsKey })
    },
    onError: (error) => notify(error.message),
  })
  return (
    <Button
      isSmall={isSmall}
      isBusy={unload.isPending}
      aria-label={`Unload ${model}`}
      onClick={() => unload.mutate()}
    >
      Unload
    </Button>
  )
}
