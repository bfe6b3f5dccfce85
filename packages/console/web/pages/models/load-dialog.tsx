/** Loads a model into memory, and shows how far the load has come. */
import { useMutation, useQueryClient } from '@tanstack/preact-query'
import { useEffect, useRef, useState } from 'preact/hooks'
import { request } from '../../api/client.ts'
import { toApiError } from '../../api/errors.ts'
import { Bar } from '../../components/bar.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions, DialogBody } from '../../components/dialog.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { SelectField } from '../../components/form/field.tsx'
import { Form } from '../../components/form/form.tsx'
import { useNotify } from '../../components/notices.tsx'
import { formatPercent } from '../../format/numbers.ts'
import { modelsKey } from '../../llm/models.ts'
import { readLines } from '../../llm/streams.ts'

/** Values of `keep_alive`. */
const durations = [
  ['', "The app's default"],
  ['5m', '5 minutes after the last call'],
  ['1h', '1 hour after the last call'],
  ['24h', '1 day after the last call'],
  ['-1m', 'Until someone unloads it'],
] as const

export function LoadDialog({ model, onClose }: { readonly model: string; readonly onClose: () => void }) {
  const [keepAlive, setKeepAlive] = useState('')
  const [fraction, setFraction] = useState(0)
  const controller = useRef(new AbortController())
  const client = useQueryClient()
  const notify = useNotify()
  const load = useMutation({
    mutationFn: () => loadModel(model, keepAlive, controller.current.signal, setFraction),
    onSuccess: () => {
      notify(`Loaded ${model}.`)
      void client.invalidateQueries({ queryKey: modelsKey })
      onClose()
    },
  })
  useEffect(() => () => controller.current.abort(), [])
  return (
    <Dialog title={`Load ${model}`} onClose={onClose}>
      <Form isBusy={load.isPending} onSubmit={() => load.mutate()}>
        <DialogBody>
          <div class="stack">
            <SelectField
              label="Keep in memory"
              value={keepAlive}
              onChange={setKeepAlive}
              options={durations}
              disabled={load.isPending}
            />
            {load.isPending && (
              <div class="bar-with-text">
                <Bar kind="progress" label={`Loading ${model}`} value={fraction} />
                <span class="muted">Loading: {formatPercent(fraction)}</span>
              </div>
            )}
            {load.error && <ErrorMessage error={load.error} />}
          </div>
        </DialogBody>
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={load.isPending}>
            Load
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  )
}

interface LoadLine {
  readonly error?: string
  readonly load_progress?: { readonly fraction: number }
}

async function loadModel(
  model: string,
  keepAlive: string,
  signal: AbortSignal,
  onProgress: (fraction: number) => void,
): Promise<void> {
  const json = { model, return_progress: true, ...(keepAlive !== '' && { keep_alive: keepAlive }) }
  const response = await request('llm/api/generate', { json, signal })
  for await (const value of readLines(response)) {
    const line = value as LoadLine
    if (line.error !== undefined) throw toApiError(response.status, line)
    if (line.load_progress) onProgress(line.load_progress.fraction)
  }
}
