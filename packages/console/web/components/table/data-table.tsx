/** Tables. On narrow screens each row becomes a card. */
// biome-ignore-all lint/a11y/noRedundantRoles: the style sheet lays rows out as cards, which drops the implied roles.
import {
  type ColumnDef,
  createSortedRowModel,
  rowSortingFeature,
  tableFeatures,
  useTable,
} from '@tanstack/preact-table'
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { Button } from '../button.tsx'
import { Loading } from '../empty-state.tsx'
import { ErrorMessage } from '../error-message.tsx'
import { Icon } from '../icon.tsx'
import type { Pages } from './use-pages.ts'

export interface Column<Row> {
  readonly id: string
  readonly header: string
  readonly cell: (row: Row) => ComponentChildren
  /** `end` for numbers. */
  readonly align?: 'end'
  /** Makes the column sortable. For tables that hold all rows, not a page of them. */
  readonly sortValue?: (row: Row) => string | number | bigint
  /** Whether only screen readers read the header, as for a column of buttons. */
  readonly isHeaderHidden?: boolean
  /** Whether narrow screens leave the column out. */
  readonly isHiddenNarrow?: boolean
}

export interface DataTableProps<Row> {
  /** Name of the table for screen readers. */
  readonly label: string
  /** Keep the array stable between renders. */
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowId: (row: Row) => string
  readonly isStale?: boolean
}

const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel() })
type Features = typeof features

export function DataTable<Row extends object>({ label, columns, rows, rowId, isStale }: DataTableProps<Row>) {
  const definitions = useMemo(() => columns.map(toColumnDef), [columns])
  const byId = useMemo(() => new Map(columns.map((column) => [column.id, column])), [columns])
  const table = useTable<Features, Row>({
    features,
    columns: definitions,
    data: rows as Row[],
    getRowId: rowId,
  })
  const classOf = (id: string): string => {
    const column = byId.get(id)
    return `${column?.align ?? 'start'}${column?.isHiddenNarrow ? ' hidden-narrow' : ''}`
  }
  const labelOf = (id: string): string | undefined => {
    const column = byId.get(id)
    return column?.isHeaderHidden ? undefined : column?.header
  }
  return (
    <div class="table-box">
      <table class={isStale ? 'table stale' : 'table'} role="table" aria-label={label} aria-busy={isStale}>
        <thead role="rowgroup">
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} role="row">
              {group.headers.map(({ id, column }) => (
                <th
                  key={id}
                  role="columnheader"
                  scope="col"
                  class={classOf(column.id)}
                  aria-sort={ariaSort(column.getIsSorted())}
                >
                  <HeaderContent
                    column={byId.get(column.id) as Column<Row>}
                    onSort={column.getCanSort() ? () => column.toggleSorting() : undefined}
                  />
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody role="rowgroup">
          {table.getRowModel().rows.map((row) => (
            <tr key={row.id} role="row">
              {row.getAllCells().map(({ id, column }) => (
                <td key={id} role="cell" class={classOf(column.id)} data-label={labelOf(column.id)}>
                  <div class="cell">{byId.get(column.id)?.cell(row.original)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const HeaderContent = <Row,>({
  column,
  onSort,
}: {
  readonly column: Column<Row>
  readonly onSort: (() => void) | undefined
}) =>
  column.isHeaderHidden ? (
    <span class="visually-hidden">{column.header}</span>
  ) : onSort ? (
    <button type="button" class="sort-button" onClick={onSort}>
      {column.header}
    </button>
  ) : (
    column.header
  )

const toColumnDef = <Row extends object>({
  id,
  header,
  sortValue,
}: Column<Row>): ColumnDef<Features, Row> => ({
  id,
  header,
  accessorFn: (row: Row) => sortValue?.(row),
  enableSorting: sortValue !== undefined,
  sortFn: (a, b, column) => compare(a.getValue(column), b.getValue(column)),
})

const compare = (a: unknown, b: unknown): number =>
  typeof a === 'string' && typeof b === 'string'
    ? a.localeCompare(b)
    : Number((a as number) > (b as number)) - Number((a as number) < (b as number))

const ariaSort = (sorted: false | 'asc' | 'desc'): 'ascending' | 'descending' | undefined =>
  sorted === false ? undefined : sorted === 'asc' ? 'ascending' : 'descending'

export interface PagedTableProps<Row> extends Omit<DataTableProps<Row>, 'rows' | 'isStale'> {
  readonly pages: Pages<Row>
  /** Shown when the list has no entries. */
  readonly empty: ComponentChildren
}

/** A table of one page of a list, with its states and the way to the other pages. */
export function PagedTable<Row extends object>({ pages, empty, ...table }: PagedTableProps<Row>) {
  const { rows, error, isStale, number, refetch } = pages
  if (error != null) return <ErrorMessage error={error} onRetry={refetch} />
  if (rows === undefined) return <Loading />
  if (rows.length === 0 && number === 1) return empty
  return (
    <div>
      <DataTable {...table} rows={rows} isStale={isStale} />
      <Pager label={table.label} pages={pages} />
    </div>
  )
}

/** Goes to the next and the previous page. Nothing if there is one page. */
export const Pager = <Row,>({ label, pages }: { readonly label: string; readonly pages: Pages<Row> }) =>
  pages.next || pages.previous ? (
    <nav class="pager" aria-label={`Pages of ${label}`}>
      <Button isSmall icon="previous" disabled={!pages.previous} onClick={pages.previous}>
        Previous
      </Button>
      <span class="muted">Page {pages.number}</span>
      <Button isSmall disabled={!pages.next} onClick={pages.next}>
        Next
        <Icon name="next" />
      </Button>
    </nav>
  ) : null
