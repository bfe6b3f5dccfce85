/** A modal dialog. Render it while it is open: `{isOpen && <Dialog …>}`. */
import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { Icon } from './icon.tsx'

export interface DialogProps {
  readonly title: string
  /** Called for Escape and the close button. */
  readonly onClose: () => void
  /** Whether only the buttons of the content close it, because closing would lose something. */
  readonly isPersistent?: boolean
  readonly isWide?: boolean
  readonly children: ComponentChildren
}

export function Dialog({ title, onClose, isPersistent = false, isWide = false, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  const isMounted = useRef(true)
  useLayoutEffect(() => {
    const dialog = ref.current
    dialog?.showModal()
    return () => {
      isMounted.current = false
      // Closing returns the focus to the element that had it before.
      dialog?.close()
    }
  }, [])
  return (
    <dialog
      ref={ref}
      class={isWide ? 'dialog wide' : 'dialog'}
      aria-labelledby={titleId}
      onKeyDown={(event) => {
        // `cancel` alone does not keep a dialog open that gets two Escapes.
        if (isPersistent && event.key === 'Escape') event.preventDefault()
      }}
      onCancel={(event) => {
        event.preventDefault()
        if (!isPersistent) onClose()
      }}
      onClose={() => {
        // The browser has closed it by other means, such as the back gesture of a phone.
        if (isMounted.current) ref.current?.showModal()
      }}
    >
      <header class="dialog-header">
        <h2 id={titleId}>{title}</h2>
        {!isPersistent && (
          <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        )}
      </header>
      {children}
    </dialog>
  )
}

/** The scrolling part of a dialog. */
export const DialogBody = ({ children }: { readonly children: ComponentChildren }) => (
  <div class="dialog-body">{children}</div>
)

/** The buttons of a dialog, the main one last. */
export const DialogActions = ({ children }: { readonly children: ComponentChildren }) => (
  <footer class="dialog-actions">{children}</footer>
)
