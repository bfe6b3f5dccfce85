/** Copies a text to the clipboard. */
import { useState } from 'preact/hooks'
import { Button } from '../button.tsx'

export interface CopyButtonProps {
  readonly text: string
  /** @default 'Copy' */
  readonly label?: string
  readonly kind?: 'primary' | 'secondary' | 'plain'
  /** Whether to show the icon only. */
  readonly isTextHidden?: boolean
}

const shownMs = 2_000

export function CopyButton({
  text,
  label = 'Copy',
  kind = 'secondary',
  isTextHidden = false,
}: CopyButtonProps) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle')
  const copy = async (button: HTMLElement): Promise<void> => {
    setState((await copyText(text, button)) ? 'copied' : 'failed')
    setTimeout(() => setState('idle'), shownMs)
  }
  return (
    <Button
      kind={kind}
      isSmall
      isTextHidden={isTextHidden}
      icon={state === 'copied' ? 'check' : 'copy'}
      aria-live="polite"
      onClick={({ currentTarget }) => void copy(currentTarget)}
    >
      {state === 'idle' ? label : state === 'copied' ? 'Copied' : 'Copying failed'}
    </Button>
  )
}

/** Browsers offer `navigator.clipboard` only over HTTPS and on localhost. */
async function copyText(text: string, button: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copySelection(text, button)
  }
}

function copySelection(text: string, button: HTMLElement): boolean {
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'visually-hidden'
  // A modal dialog makes everything outside it unselectable.
  ;(button.closest('dialog') ?? document.body).append(area)
  area.select()
  const isCopied = document.execCommand('copy')
  area.remove()
  button.focus()
  return isCopied
}
