/** Errors of requests. */
import { ApiError } from '../api/errors.ts'
import { Button } from './button.tsx'
import { NeedsDatabase } from './empty-state.tsx'
import { Icon } from './icon.tsx'

export interface ErrorMessageProps {
  readonly error: unknown
  readonly onRetry?: () => void
}

export function ErrorMessage({ error, onRetry }: ErrorMessageProps) {
  if (error instanceof ApiError && error.needsDatabase) return <NeedsDatabase />
  return (
    <div class="message danger" role="alert">
      <Icon name="warning" />
      <p>{error instanceof Error ? error.message : 'Something failed without a message.'}</p>
      {onRetry && (
        <Button isSmall onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  )
}
