/** Shows errors of a page instead of a blank one. */
import { Component, type ComponentChildren } from 'preact'
import { Button } from '../components/button.tsx'
import { EmptyState } from '../components/empty-state.tsx'

interface Props {
  /** Another value shows the content again. */
  readonly resetKey: string
  readonly children: ComponentChildren
}

interface State {
  readonly error?: Error | undefined
  readonly resetKey?: string
}

export class ErrorBoundary extends Component<Props, State> {
  override state: State = {}

  static override getDerivedStateFromError(error: Error): State {
    return { error }
  }

  static override getDerivedStateFromProps({ resetKey }: Props, state: State): State | null {
    return state.resetKey === resetKey ? null : { resetKey, error: undefined }
  }

  override render() {
    const { error } = this.state
    if (error === undefined) return this.props.children
    return (
      <div role="alert">
        <EmptyState
          title="This page has failed"
          icon="warning"
          actions={
            <Button kind="primary" onClick={() => location.reload()}>
              Reload the console
            </Button>
          }
        >
          <p>
            {error.message}. If the app was updated a moment ago, reloading loads the pages of the new
            version.
          </p>
        </EmptyState>
      </div>
    )
  }
}
