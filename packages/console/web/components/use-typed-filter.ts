/** A filter that the viewer types. It applies when the typing stops. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { useFilter } from './use-filter.ts'

const typingMs = 250

/** @returns the filter that applies, the text of its field, and a function that changes the text */
export function useTypedFilter(
  name: string,
): readonly [value: string, text: string, change: (text: string) => void] {
  const [value, setValue] = useFilter(name)
  const [text, setText] = useState(value)
  const applied = useRef(value)
  useEffect(() => {
    if (value !== applied.current) {
      // Another address, such as by going back.
      applied.current = value
      setText(value)
      return undefined
    }
    if (text.trim() === value) return undefined
    const timer = setTimeout(() => {
      applied.current = text.trim()
      setValue(applied.current)
    }, typingMs)
    return () => clearTimeout(timer)
  }, [text, value, setValue])
  return [value, text, setText]
}
