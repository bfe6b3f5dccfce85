/** The field for the next message. */
import { Button } from '../../components/button.tsx'
import { TextAreaField } from '../../components/form/field.tsx'
import { Form } from '../../components/form/form.tsx'

export interface ComposerProps {
  readonly draft: string
  readonly onDraft: (text: string) => void
  readonly isRunning: boolean
  /** Why nothing can be sent. */
  readonly problem: string | undefined
  readonly onSend: (text: string) => void
  readonly onStop: () => void
  /** Undefined if the conversation has no answer. */
  readonly onAskAgain: (() => void) | undefined
}

export function Composer({ draft, onDraft, isRunning, problem, onSend, onStop, onAskAgain }: ComposerProps) {
  const canSend = draft.trim() !== '' && problem === undefined && !isRunning
  const submit = (): void => {
    if (canSend) onSend(draft.trim())
  }
  return (
    <div class="composer">
      <Form label="Next message" onSubmit={submit}>
        <TextAreaField
          label="Message"
          isLabelHidden
          placeholder="Message"
          rows={2}
          value={draft}
          onChange={onDraft}
          onKeyDown={(event) => {
            // An input method uses Enter to accept a word.
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
            event.preventDefault()
            submit()
          }}
        />
        <div class="composer-actions">
          <p
            class={problem === undefined ? 'composer-hint muted' : 'composer-problem field-error'}
            role="status"
          >
            {problem === undefined
              ? 'Enter sends, Shift + Enter starts a new line'
              : `Cannot send. ${problem}`}
          </p>
          {onAskAgain && !isRunning && (
            <Button kind="plain" icon="refresh" onClick={onAskAgain}>
              Ask again
            </Button>
          )}
          {isRunning ? (
            <Button icon="stop" onClick={onStop}>
              Stop
            </Button>
          ) : (
            <Button type="submit" kind="primary" icon="play" disabled={!canSend}>
              Send
            </Button>
          )}
        </div>
      </Form>
    </div>
  )
}
