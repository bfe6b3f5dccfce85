/** Asks for the name of a model to pull. */
import { useQueryClient } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions, DialogBody } from '../../components/dialog.tsx'
import { CheckField, TextField } from '../../components/form/field.tsx'
import { Form } from '../../components/form/form.tsx'
import { useNotify } from '../../components/notices.tsx'
import { startPull } from './pulls.ts'

export function PullDialog({ onClose }: { readonly onClose: () => void }) {
  const [model, setModel] = useState('')
  const [isInsecure, setIsInsecure] = useState(false)
  const [error, setError] = useState<string>()
  const client = useQueryClient()
  const notify = useNotify()
  const pull = async (): Promise<void> => {
    const name = model.trim()
    if (name === '') return setError('Enter the name of a model.')
    onClose()
    if (await startPull(client, { model: name, isInsecure: isInsecure && hasPort(name) }))
      notify(`Pulled ${name}.`)
  }
  return (
    <Dialog title="Pull model" onClose={onClose}>
      <Form onSubmit={() => void pull()}>
        <DialogBody>
          <div class="stack">
            <TextField
              label="Model"
              placeholder="qwen3:0.6b"
              spellcheck={false}
              value={model}
              error={error}
              onChange={setModel}
              hint="A name of the Ollama library, such as qwen3:0.6b, or a GGUF repository of Hugging Face, such as hf.co/owner/name:Q4_K_M."
            />
            {hasPort(model) && (
              <CheckField
                label="Connect without TLS"
                hint="For a private registry that speaks plain HTTP."
                isChecked={isInsecure}
                onChange={setIsInsecure}
              />
            )}
          </div>
        </DialogBody>
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" icon="download">
            Pull
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  )
}

/** Whether a name begins with a host and its port, as names of private registries do. */
const hasPort = (model: string): boolean => /^\s*[^/\s]+:\d+\//.test(model)
