/** Filters of a page, kept in its address, so that reloading and going back keep them. */
import { useSearchParams } from 'wouter-preact'

/** The value of a query parameter of the page, and a function that changes it. An empty value removes it. */
export function useFilter(name: string): readonly [value: string, change: (value: string) => void] {
  const [params, setParams] = useSearchParams()
  const change = (value: string): void =>
    setParams(
      (previous) => {
        const next = new URLSearchParams(previous)
        if (value === '') next.delete(name)
        else next.set(name, value)
        return next
      },
      { replace: true },
    )
  return [params.get(name) ?? '', change]
}
