/** Short messages about finished actions, which screen readers announce. */
import { type ComponentChildren, createContext } from 'preact'
import { useCallback, useContext, useState } from 'preact/hooks'
import { Icon } from './icon.tsx'

const NoticeContext = createContext<(text: string) => void>(() => {})

/** Returns a function that shows a message, such as `Key revoked.`, for a few seconds. */
export const useNotify = (): ((text: string) => void) => useContext(NoticeContext)

interface Notice {
  readonly id: number
  readonly text: string
}

const shownMs = 5_000
let lastId = 0

export function Notices({ children }: { readonly children: ComponentChildren }) {
  const [notices, setNotices] = useState<readonly Notice[]>([])
  const notify = useCallback((text: string) => {
    const notice = { id: ++lastId, text }
    setNotices((shown) => [...shown.slice(-2), notice])
    setTimeout(() => setNotices((shown) => shown.filter(({ id }) => id !== notice.id)), shownMs)
  }, [])
  return (
    <NoticeContext.Provider value={notify}>
      {children}
      <div class="notices" role="status" aria-live="polite">
        {notices.map(({ id, text }) => (
          <p class="notice" key={id}>
            <Icon name="check" />
            {text}
          </p>
        ))}
      </div>
    </NoticeContext.Provider>
  )
}
