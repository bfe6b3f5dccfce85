/** All keys. */
import { Link } from 'wouter-preact'
import { admin, read } from '../../api/client.ts'
import { useCan } from '../../api/session.ts'
import type { ApiKey } from '../../api/types.ts'
import { ButtonLink } from '../../components/button.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { SelectField, TextField } from '../../components/form/field.tsx'
import { Page } from '../../components/page.tsx'
import { type Column, PagedTable } from '../../components/table/data-table.tsx'
import { usePages } from '../../components/table/use-pages.ts'
import { Time } from '../../components/text/time.tsx'
import { useFilter } from '../../components/use-filter.ts'
import { useTypedFilter } from '../../components/use-typed-filter.ts'
import { SpendingBar } from '../../limits/spending.tsx'
import { KeyStatus } from './key-status.tsx'
import { keysKey } from './queries.ts'

export function KeyList() {
  const canChange = useCan('admin')
  const [search, searchText, setSearch] = useTypedFilter('search')
  const [status, setStatus] = useFilter('status')
  const pages = usePages<ApiKey>([...keysKey, 'list', search, status], ({ page, signal }) => {
    const query = {
      ...page,
      ...(search && { search }),
      ...(status && { status: status as ApiKey['status'] }),
    }
    return read(admin.GET('/keys', { params: { query }, signal }))
  })
  const create = canChange && (
    <ButtonLink href="/keys/new" kind="primary" icon="plus">
      Create key
    </ButtonLink>
  )
  return (
    <Page
      title="Keys"
      description="API keys of programs and people, with their limits and spending."
      actions={create || undefined}
    >
      <search class="toolbar">
        <TextField
          label="Search"
          type="search"
          placeholder="Name, hint or id"
          value={searchText}
          onChange={setSearch}
        />
        <SelectField label="Status" value={status} onChange={setStatus} options={statusOptions} />
      </search>
      <PagedTable
        label="Keys"
        columns={columns}
        pages={pages}
        rowId={({ id }) => id}
        empty={
          search || status ? (
            <EmptyState title="No key matches" icon="search">
              <p>Search for a part of the name, the hint or the id, or choose another status.</p>
            </EmptyState>
          ) : (
            <EmptyState title="No keys yet" icon="keys" actions={create || undefined}>
              <p>A program needs a key to call the APIs. Create one for each program or person.</p>
            </EmptyState>
          )
        }
      />
    </Page>
  )
}

const statusOptions = [
  ['', 'All'],
  ['active', 'Active'],
  ['expired', 'Expired'],
  ['revoked', 'Revoked'],
] as const

const columns: readonly Column<ApiKey>[] = [
  {
    id: 'name',
    header: 'Name',
    cell: ({ id, name, hint }) => (
      <>
        <Link href={`/keys/${id}`}>{name}</Link>
        <div class="muted code">{hint}</div>
      </>
    ),
  },
  { id: 'status', header: 'Status', cell: (key) => <KeyStatus keyOf={key} /> },
  { id: 'tier', header: 'Tier', cell: ({ tier }) => tier ?? <span class="muted">–</span> },
  {
    id: 'spending',
    header: 'Spending',
    cell: ({ name, spending }) =>
      spending ? <SpendingBar name={name} spending={spending} /> : <span class="muted">No limit</span>,
  },
  {
    id: 'lastUsed',
    header: 'Last use',
    cell: ({ lastUsedAt }) =>
      lastUsedAt === undefined ? <span class="muted">Never</span> : <Time at={lastUsedAt} isRelative />,
  },
  {
    id: 'created',
    header: 'Created',
    cell: ({ createdAt }) => <Time at={createdAt} />,
    isHiddenNarrow: true,
  },
]
