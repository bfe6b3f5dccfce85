/** The models in memory: where they are, and for how long. */
import { useQuery } from '@tanstack/preact-query'
import { useMemo } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { useCan } from '../../api/session.ts'
import { ErrorMessage } from '../../components/error-message.tsx'
import { Section } from '../../components/page.tsx'
import { type Column, DataTable } from '../../components/table/data-table.tsx'
import { Time } from '../../components/text/time.tsx'
import { formatBytes, formatCount, formatPercent } from '../../format/numbers.ts'
import { type LoadedModel, loadedQuery } from '../../llm/models.ts'
import { linkTo } from './links.ts'
import { UnloadButton } from './unload-button.tsx'

export function LoadedModels() {
  const canChange = useCan('models')
  const loaded = useQuery(loadedQuery)
  const columns = useMemo(() => (canChange ? [...facts, unloadColumn] : facts), [canChange])
  const models = loaded.data ?? []
  return (
    <Section title="In memory">
      {loaded.error && <ErrorMessage error={loaded.error} onRetry={() => void loaded.refetch()} />}
      {loaded.data && models.length === 0 && (
        <p class="muted">No model is in memory. The first call of a model loads it.</p>
      )}
      {models.length > 0 && (
        <DataTable label="Models in memory" columns={columns} rows={models} rowId={({ name }) => name} />
      )}
    </Section>
  )
}

/** Such as `CPU`, or `60% on the card`. */
export function placeOf({ size, size_vram: onCards }: Pick<LoadedModel, 'size' | 'size_vram'>): string {
  if (onCards <= 0) return 'CPU'
  return onCards >= size
    ? 'Graphics card'
    : `${formatPercent(onCards / size)} on the graphics card, rest on the CPU`
}

/** A model that never expires has a time centuries ahead. */
const neverMs = 100 * 365 * 86_400_000

const facts: readonly Column<LoadedModel>[] = [
  {
    id: 'name',
    header: 'Name',
    cell: ({ name }) => (
      <Link href={linkTo(name)} class="model-name">
        {name}
      </Link>
    ),
  },
  { id: 'size', header: 'Memory', align: 'end', cell: ({ size }) => formatBytes(size) },
  { id: 'place', header: 'Runs on', cell: placeOf },
  {
    id: 'context',
    header: 'Context',
    align: 'end',
    cell: ({ context_length: context }) => formatCount(context),
  },
  {
    id: 'expires',
    header: 'Unloads',
    cell: ({ expires_at: at }) =>
      Date.parse(at) - Date.now() > neverMs ? 'Never' : <Time at={at} isRelative />,
  },
]

const unloadColumn: Column<LoadedModel> = {
  id: 'actions',
  header: 'Actions',
  isHeaderHidden: true,
  align: 'end',
  cell: ({ name }) => <UnloadButton model={name} isSmall />,
}
