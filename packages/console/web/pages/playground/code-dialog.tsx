/** Code that sends the current request. */
import { useState } from 'preact/hooks'
import { useSession } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogBody } from '../../components/dialog.tsx'
import { CodeBlock } from '../../components/text/code.tsx'
import type { ApiName, ChatRequest } from './apis/api.ts'
import { createSnippet, type SnippetName, snippetNames } from './snippets.ts'

export interface CodeDialogProps {
  readonly api: ApiName
  readonly request: ChatRequest
  readonly onClose: () => void
}

export function CodeDialog({ api, request, onClose }: CodeDialogProps) {
  const { apiUrl = location.origin, auth } = useSession()
  const [name, setName] = useState<SnippetName>(api)
  const needsKey = auth === 'keys'
  const text = createSnippet(name, { request, api, apiUrl, needsKey })
  return (
    <Dialog title="Code of this request" isWide onClose={onClose}>
      <DialogBody>
        <div class="stack">
          <fieldset class="segments">
            <legend class="visually-hidden">Program</legend>
            {snippetNames.map((option) => (
              <Button
                key={option}
                isSmall
                kind={option === name ? 'primary' : 'secondary'}
                aria-pressed={option === name}
                onClick={() => setName(option)}
              >
                {option}
              </Button>
            ))}
          </fieldset>
          <CodeBlock text={text} label={`Code for ${name}`} />
          <p class="muted">
            {name !== 'curl' && (
              <>
                Needs <code>npm install {packageOf[name]}</code>.{' '}
              </>
            )}
            {needsKey && (
              <>
                Set <code>MODELMOUNT_API_KEY</code> to an API key with the scope <code>inference</code>.
              </>
            )}
            {auth === 'host' && 'This app has its own login: add its credentials to the request.'}
          </p>
        </div>
      </DialogBody>
    </Dialog>
  )
}

const packageOf = { openai: 'openai', anthropic: '@anthropic-ai/sdk', ollama: 'ollama' } as const
