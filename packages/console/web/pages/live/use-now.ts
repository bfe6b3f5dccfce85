/** The current time. */
import { useEffect, useState } from 'preact/hooks'

/** Updated each second while something changes with it. Browsers slow timers of hidden tabs down by themselves. */
export function useNow(isRunning: boolean): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    if (!isRunning) return undefined
    setNow(Date.now())
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now())
    }, 1_000)
    return () => clearInterval(timer)
  }, [isRunning])
  return now
}
