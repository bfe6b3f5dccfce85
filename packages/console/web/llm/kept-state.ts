/** State that outlives the page that shows it, such as a download, until the viewer logs out. */
import { type QueryClient, useQuery, useQueryClient } from '@tanstack/preact-query'

export interface KeptState<State> {
  readonly key: readonly [string]
  readonly initial: State
}

/** The state, and the client that `changeKept` takes. */
export function useKept<State>({ key, initial }: KeptState<State>): readonly [State, QueryClient] {
  const { data } = useQuery({
    queryKey: key,
    queryFn: () => initial,
    enabled: false,
    initialData: initial,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  })
  return [data ?? initial, useQueryClient()]
}

/** The state as it is now. */
export const readKept = <State>(client: QueryClient, { key, initial }: KeptState<State>): State =>
  client.getQueryData<State>(key) ?? initial

export const changeKept = <State>(
  client: QueryClient,
  kept: KeptState<State>,
  change: (state: State) => State,
): void => {
  client.setQueryData<State>(kept.key, change(readKept(client, kept)))
}
