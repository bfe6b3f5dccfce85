/** The running calls. */
import { useMemo, useState } from 'preact/hooks'
import { useCan } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
import { type Column, DataTable } from '../../components/table/data-table.tsx'
import { Badge, type Tone } from '../../components/text/badge.tsx'
import { formatCount } from '../../format/numbers.ts'
import { formatAge } from './age.ts'
import { CancelCall } from './cancel-call.tsx'
import { KeyName } from './key-name.tsx'
import type { LiveCall, TimedCall } from './live-calls.ts'

export interface CallTableProps {
  readonly calls: readonly TimedCall[]
  readonly now: number
  /** Whether the calls may run in different processes. */
  readonly hasProcesses: boolean
}

const maxRows = 200

export function CallTable({ calls, now, hasProcesses }: CallTableProps) {
  const canChange = useCan('admin')
  const [canceled, setCanceled] = useState<LiveCall>()
  const columns = useMemo(
    () => [
      ...callColumns,
      ageColumn(now),
      ...(hasProcesses ? [processColumn] : []),
      ...(canChange ? [cancelColumn(setCanceled)] : []),
    ],
    [now, hasProcesses, canChange],
  )
  return (
    <>
      <DataTable
        label="Running calls"
        columns={columns}
        rows={calls.slice(0, maxRows)}
        rowId={({ id }) => id}
      />
      {calls.length > maxRows && (
        <p class="muted">
          The oldest {maxRows} of {formatCount(calls.length)} calls.
        </p>
      )}
      {canceled && <CancelCall call={canceled} onClose={() => setCanceled(undefined)} />}
    </>
  )
}

const phases = {
  queued: ['Queued', 'neutral'],
  loading: ['Loading model', 'warning'],
  prompt: ['Evaluating prompt', 'accent'],
  decoding: ['Generating', 'success'],
} as const satisfies Record<LiveCall['phase'], readonly [string, Tone]>

const dialects: Readonly<Record<string, string>> = {
  ollama: 'Ollama API',
  openai: 'OpenAI API',
  anthropic: 'Anthropic API',
}

const callColumns: readonly Column<TimedCall>[] = [
  {
    id: 'model',
    header: 'Model',
    cell: ({ model, kind, dialect, isBatchItem }) => (
      <>
        {model}
        <div class="muted">
          {[kind, isBatchItem ? 'batch' : dialect && (dialects[dialect] ?? dialect)]
            .filter(Boolean)
            .join(', ')}
        </div>
      </>
    ),
  },
  {
    id: 'key',
    header: 'Key',
    cell: ({ key, caller, tenant }) => (
      <>
        <KeyName id={key} caller={caller} />
        {tenant !== '' && tenant !== caller && <div class="muted">{tenant}</div>}
      </>
    ),
  },
  {
    id: 'phase',
    header: 'Phase',
    cell: ({ phase }) => {
      const [text, tone] = phases[phase]
      return <Badge tone={tone}>{text}</Badge>
    },
  },
  {
    id: 'input',
    header: 'Input tokens',
    align: 'end',
    cell: ({ inputTokens, reusedTokens }) => (
      <>
        {inputTokens === 0 ? <span class="muted">–</span> : formatCount(inputTokens)}
        {reusedTokens > 0 && <div class="muted">{formatCount(reusedTokens)} cached</div>}
      </>
    ),
  },
  {
    id: 'output',
    header: 'Output tokens',
    align: 'end',
    cell: ({ outputTokens, tokensPerSecond, phase }) => (
      <>
        {formatCount(outputTokens)}
        {phase === 'decoding' && tokensPerSecond > 0 && (
          <div class="muted">
            {tokensPerSecond < 10 ? tokensPerSecond.toFixed(1) : Math.round(tokensPerSecond)} per second
          </div>
        )}
      </>
    ),
  },
]

const ageColumn = (now: number): Column<TimedCall> => ({
  id: 'age',
  header: 'Age',
  align: 'end',
  cell: ({ startedMs }) => formatAge(startedMs, now),
})

const processColumn: Column<TimedCall> = {
  id: 'process',
  header: 'Process',
  cell: ({ process: { host, pid } }) => (
    <>
      {host}
      <div class="muted number">{pid}</div>
    </>
  ),
}

const cancelColumn = (onCancel: (call: LiveCall) => void): Column<TimedCall> => ({
  id: 'cancel',
  header: 'Cancel',
  isHeaderHidden: true,
  align: 'end',
  cell: (call) =>
    call.canCancel ? (
      <Button
        isSmall
        icon="stop"
        aria-label={`Cancel the call of ${call.model}`}
        onClick={() => onCancel(call)}
      >
        Cancel
      </Button>
    ) : null,
})
