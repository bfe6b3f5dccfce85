/** A short state, such as `active`. */
export type Tone = 'neutral' | 'accent' | 'success' | 'warning' | 'danger'

export const Badge = ({
  tone = 'neutral',
  children,
}: {
  readonly tone?: Tone
  readonly children: string
}) => <span class={`badge ${tone}`}>{children}</span>
