/** The frames of a spinner for terminals. */

const frames = [...'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏']
/** How long a frame is shown, in ms. */
export const frameMs = 100

export const spinner = (): string => frames[Math.trunc(performance.now() / frameMs) % frames.length] ?? ''
