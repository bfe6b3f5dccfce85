/** The location of a page: path and query in the fragment of the address, which works below any prefix. */
import type { BaseLocationHook, BaseSearchHook } from 'wouter-preact'
import { useHashLocation } from 'wouter-preact/use-hash-location'

// wouter's own `navigate` would move the query in front of the fragment, which reloads nothing but reaches logs of servers.
const navigate = (to: string, { replace = false }: { replace?: boolean } = {}): void => {
  history[replace ? 'replaceState' : 'pushState'](null, '', `#${to}`)
  dispatchEvent(new Event('hashchange'))
}

export const useFragmentPath: BaseLocationHook & { hrefs?: (href: string) => string } = () => {
  const [location] = useHashLocation()
  return [splitLocation(location).path, navigate]
}
useFragmentPath.hrefs = (href) => `#${href}`

export const useFragmentQuery: BaseSearchHook = () => splitLocation(useHashLocation()[0]).query

function splitLocation(location: string): { path: string; query: string } {
  const start = location.indexOf('?')
  return start === -1
    ? { path: location, query: '' }
    : { path: location.slice(0, start), query: location.slice(start + 1) }
}
