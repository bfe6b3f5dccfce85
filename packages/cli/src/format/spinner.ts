/** A spinner for terminals. */

const frames = [...'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏']
const frameMs = 100

export const spinner = (): string => frames[Math.trunc(performance.now() / frameMs) % frames.length] ?? ''

/** Shows a spinner until `stop()` is called. Does nothing if `out` is not a terminal. */
export function spin(out: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>): { stop(): void } {
  if (!out.isTTY) return { stop: () => {} }
  let isTurning = true
  const timer = setInterval(() => out.write(`\r${spinner()} `), frameMs)
  return {
    stop: () => {
      clearInterval(timer)
      if (isTurning) out.write('\r\x1b[K')
      isTurning = false
    },
  }
}
