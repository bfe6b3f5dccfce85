/** Part of a whole: spending, limits, progress. */
export interface BarProps {
  /** What the bar shows, for screen readers. */
  readonly label: string
  /** From 0 to 1. */
  readonly value: number
  /** A `meter` changes its color near the end. @default 'meter' */
  readonly kind?: 'meter' | 'progress'
  /** The value in words, such as `$1.20 of $5.00`. */
  readonly text?: string
}

export function Bar({ label, value, kind = 'meter', text }: BarProps) {
  const percent = Math.min(100, Math.max(0, value * 100))
  const tone = kind === 'progress' ? '' : percent >= 100 ? ' danger' : percent >= 80 ? ' warning' : ''
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles support these attributes.
    <div
      class={`bar${tone}`}
      role={kind === 'meter' ? 'meter' : 'progressbar'}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(percent)}
      aria-valuetext={text}
    >
      {/* Preact sets this through the CSSOM, which the Content-Security-Policy allows. */}
      <div class="bar-fill" style={{ width: `${percent}%` }} />
    </div>
  )
}
