/** The viewer answers the tool calls of a model by hand. */
import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { TextAreaField } from '../../components/form/field.tsx'
import { Form } from '../../components/form/form.tsx'
import type { ToolCall } from './apis/api.ts'
import type { Turn } from './chat.ts'

/** The calls of the last answer, which need results before the conversation goes on. */
export function pendingCalls(turns: readonly Turn[]): readonly ToolCall[] {
  const message = turns.at(-1)?.message
  return message?.role === 'assistant' ? message.toolCalls : []
}

export function ToolResults({
  calls,
  onSend,
}: {
  readonly calls: readonly ToolCall[]
  readonly onSend: (results: readonly Turn[]) => void
}) {
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({})
  const send = (): void =>
    onSend(
      calls.map(({ id, name }) => ({
        message: { role: 'tool', callId: id, name, text: texts[id] ?? '' },
      })),
    )
  return (
    <div class="composer">
      <Form label="Results of tool calls" onSubmit={send}>
        {calls.map(({ id, name }) => (
          <TextAreaField
            key={id}
            label={`Result of ${name}`}
            hint="What your program would return, such as JSON or text."
            rows={2}
            class="code"
            spellcheck={false}
            value={texts[id] ?? ''}
            onChange={(text) => setTexts({ ...texts, [id]: text })}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
              event.preventDefault()
              send()
            }}
          />
        ))}
        <div class="composer-actions">
          <span class="muted composer-hint">Ctrl + Enter sends</span>
          <Button type="submit" kind="primary" icon="play">
            {calls.length === 1 ? 'Send result' : 'Send results'}
          </Button>
        </div>
      </Form>
    </div>
  )
}
