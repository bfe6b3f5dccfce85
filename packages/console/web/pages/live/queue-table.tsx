/** Calls that wait, by model. */
import { useMemo } from 'preact/hooks'
import { type Column, DataTable } from '../../components/table/data-table.tsx'
import { formatCount } from '../../format/numbers.ts'
import { formatAge } from './age.ts'
import type { Queue } from './live-calls.ts'

export function QueueTable({ queues, now }: { readonly queues: readonly Queue[]; readonly now: number }) {
  const columns = useMemo(() => columnsOf(now), [now])
  return <DataTable label="Queues" columns={columns} rows={queues} rowId={({ model }) => model} />
}

const columnsOf = (now: number): readonly Column<Queue>[] => [
  { id: 'model', header: 'Model', cell: ({ model }) => model },
  { id: 'waiting', header: 'Waiting', align: 'end', cell: ({ waiting }) => formatCount(waiting) },
  {
    id: 'oldest',
    header: 'Longest wait',
    align: 'end',
    cell: ({ oldestMs }) => formatAge(oldestMs, now),
  },
]
