/** Pulls with their progress. */
import { Bar } from '../../components/bar.tsx'
import { Button } from '../../components/button.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { useNotify } from '../../components/notices.tsx'
import { Card, Section } from '../../components/page.tsx'
import { formatBytes } from '../../format/numbers.ts'
import { formatDuration } from '../../format/time.ts'
import { type Pull, removePull, startPull, usePulls } from './pulls.ts'
import { progressOf } from './transfer.ts'

export function Downloads() {
  const [pulls, client] = usePulls()
  const notify = useNotify()
  const retry = async (pull: Pull): Promise<void> => {
    if (await startPull(client, pull)) notify(`Pulled ${pull.model}.`)
  }
  if (pulls.length === 0) return null
  return (
    <Section title="Downloads" description="They stop when this tab of the browser is closed.">
      {pulls.map((pull) => (
        <Card key={pull.model}>
          <Download
            pull={pull}
            onRemove={() => {
              removePull(client, pull)
              if (pull.error === undefined)
                notify(`Canceled. Pull ${pull.model} again to continue where it stopped.`)
            }}
            onRetry={() => void retry(pull)}
          />
        </Card>
      ))}
    </Section>
  )
}

function Download({
  pull: { model, transfer, error },
  onRemove,
  onRetry,
}: {
  readonly pull: Pull
  readonly onRemove: () => void
  readonly onRetry: () => void
}) {
  return (
    <div class="stack">
      <div class="section-header">
        <h3 class="model-name">{model}</h3>
        <Button
          isSmall
          icon="close"
          aria-label={`${error === undefined ? 'Cancel' : 'Dismiss'} ${model}`}
          onClick={onRemove}
        >
          {error === undefined ? 'Cancel' : 'Dismiss'}
        </Button>
      </div>
      {error === undefined ? (
        <DownloadProgress model={model} transfer={transfer} />
      ) : (
        <ErrorMessage error={error} onRetry={onRetry} />
      )}
    </div>
  )
}

function DownloadProgress({ model, transfer }: Pick<Pull, 'model' | 'transfer'>) {
  const progress = progressOf(transfer, performance.now())
  // Registries send the sizes first. Until then, the status is all that is known.
  if (progress === undefined) return <p class="muted">{transfer.status}…</p>
  const { completed, total, bytesPerSecond, remainingMs } = progress
  const size = `${formatBytes(completed)} of ${formatBytes(total)}`
  const isComplete = completed >= total
  return (
    <div class="bar-with-text">
      <Bar kind="progress" label={`Pulling ${model}`} value={completed / total} text={size} />
      <span class="bar-texts muted">
        <span>{isComplete ? transfer.status : size}</span>
        {bytesPerSecond !== undefined && remainingMs !== undefined && !isComplete && (
          <span>
            {formatBytes(bytesPerSecond)}/s, {formatDuration(Math.max(1_000, remainingMs))} left
          </span>
        )}
      </span>
    </div>
  )
}
