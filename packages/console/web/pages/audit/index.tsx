/** All changes that were made through the admin API. */
import { useState } from 'preact/hooks'
import { admin, read } from '../../api/client.ts'
import type { AuditEntry } from '../../api/types.ts'
import { Button } from '../../components/button.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { SelectField, TextField } from '../../components/form/field.tsx'
import { Page } from '../../components/page.tsx'
import { type Column, PagedTable } from '../../components/table/data-table.tsx'
import { usePages } from '../../components/table/use-pages.ts'
import { Badge } from '../../components/text/badge.tsx'
import { Time } from '../../components/text/time.tsx'
import { useFilter } from '../../components/use-filter.ts'
import { useTypedFilter } from '../../components/use-typed-filter.ts'
import { actionNames, nameAction, toDayEnd, toDayStart } from './audit-texts.ts'
import { EntryDialog, Who } from './entry-dialog.tsx'

export default function Audit() {
  const filters = useFilters()
  const [entry, setEntry] = useState<AuditEntry | undefined>()
  const pages = usePages<AuditEntry>(['audit', filters.query], ({ page, signal }) =>
    read(admin.GET('/audit', { params: { query: { ...page, ...filters.query } }, signal })),
  )
  return (
    <Page
      title="Audit"
      description="Every change that was made in this console or through the admin API. Entries are kept for a year."
    >
      {filters.fields}
      <PagedTable
        label="Changes"
        columns={columns(setEntry)}
        pages={pages}
        rowId={({ id }) => id}
        empty={
          filters.isActive ? (
            <EmptyState title="No change matches" icon="search">
              <p>Choose another action or a longer time.</p>
            </EmptyState>
          ) : (
            <EmptyState title="No changes yet" icon="audit">
              <p>Creating, changing or revoking a key adds the first entry.</p>
            </EmptyState>
          )
        }
      />
      {entry && <EntryDialog entry={entry} onClose={() => setEntry(undefined)} />}
    </Page>
  )
}

function useFilters() {
  const [action, setAction] = useFilter('action')
  const [from, setFrom] = useFilter('from')
  const [to, setTo] = useFilter('to')
  const [caller, callerText, setCaller] = useTypedFilter('caller')
  const [target, targetText, setTarget] = useTypedFilter('target')
  const query = {
    ...(action && { action }),
    ...(caller && { caller }),
    ...(target && { target }),
    ...(from && { from: toDayStart(from) }),
    ...(to && { to: toDayEnd(to) }),
  }
  return {
    query,
    isActive: Object.keys(query).length > 0,
    fields: (
      <search class="toolbar">
        <SelectField
          label="Action"
          value={action}
          onChange={setAction}
          options={[['', 'All'], ...actionNames.map((name) => [name, nameAction(name)] as const)]}
        />
        <TextField label="Caller" placeholder="Id" value={callerText} onChange={setCaller} />
        <TextField label="Target" placeholder="Id" value={targetText} onChange={setTarget} />
        <TextField label="From" type="date" value={from} onChange={setFrom} />
        <TextField label="To" type="date" value={to} onChange={setTo} />
      </search>
    ),
  }
}

const outcomes = {
  success: ['success', 'Done'],
  failure: ['danger', 'Failed'],
  unknown: ['warning', 'Unknown'],
} as const

const columns = (show: (entry: AuditEntry) => void): readonly Column<AuditEntry>[] => [
  { id: 'at', header: 'Time', cell: ({ at }) => <Time at={at} hasSeconds /> },
  { id: 'caller', header: 'By', cell: (entry) => <Who entry={entry} /> },
  { id: 'action', header: 'Action', cell: ({ action }) => nameAction(action) },
  {
    id: 'target',
    header: 'Target',
    cell: ({ target }) =>
      target === undefined ? <span class="muted">–</span> : <span class="code">{target}</span>,
  },
  {
    id: 'outcome',
    header: 'Outcome',
    cell: ({ outcome }) => <Badge tone={outcomes[outcome][0]}>{outcomes[outcome][1]}</Badge>,
  },
  {
    id: 'details',
    header: 'Details',
    isHeaderHidden: true,
    align: 'end',
    cell: (entry) => (
      <Button isSmall kind="plain" onClick={() => show(entry)}>
        Show details
      </Button>
    ),
  },
]
