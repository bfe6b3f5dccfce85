/** A filter by the caller, with the name of its key. */
import { useQuery } from '@tanstack/preact-query'
import { FilterButton } from '../../components/filter-button.tsx'
import { keyQuery } from './queries.ts'

export interface KeyFilterProps {
  /** Of a key, or of a user of the host app. Empty for no filter. */
  readonly id: string
  readonly onClear: () => void
}

export function KeyFilter({ id, onClear }: KeyFilterProps) {
  const key = useQuery({ ...keyQuery(id), enabled: id.startsWith('key_'), retry: false }).data
  return <FilterButton name="Key" value={id} text={key?.name ?? id} onClear={onClear} />
}
