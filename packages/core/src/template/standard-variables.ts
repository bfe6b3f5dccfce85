/** Template variables that do not depend on the conversation: dates and switches for reasoning. */
type Variables = Readonly<Record<string, unknown>>

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const

/**
 * Variables with the local date, in the formats of llama.cpp: `05 Jan 2026` for Llama 3 and `Jan 05 2026` for
 * Firefunction.
 */
export function toDateVariables(now: Date): { readonly date_string: string; readonly datetime: string } {
  const day = `${now.getDate()}`.padStart(2, '0')
  const month = months[now.getMonth()]
  const year = now.getFullYear()
  return { date_string: `${day} ${month} ${year}`, datetime: `${month} ${day} ${year}` }
}

const switches = ['enable_thinking', 'thinking'] as const

/** Variables for a request that does not turn reasoning on or off. The request can override them. */
export const toDefaultReasoning = (source: string): Variables =>
  Object.fromEntries(switches.filter((name) => expectsSwitch(source, name)).map((name) => [name, true]))

/**
 * Whether a template writes an empty thought if the switch is missing, although its model reasons by default.
 * Such templates test `not enable_thinking`, because llama.cpp always sets this variable. Templates with
 * another default test `is defined`, or set the variable.
 */
const expectsSwitch = (source: string, name: string): boolean =>
  new RegExp(`\\bnot ${name}\\b`).test(source) &&
  !new RegExp(`\\b${name} is (?:not )?(?:un)?defined|\\b${name} *\\| *default|\\bset ${name}\\b`).test(source)

/** Variables that turn reasoning on or off. */
export const toReasoningSwitch = (
  source: string,
  reasoning: boolean,
  { reasoning_effort: effort }: Variables = {},
): Variables => ({
  enable_thinking: reasoning,
  thinking: reasoning,
  // MiniMax-M3.
  thinking_mode: reasoning ? 'enabled' : 'disabled',
  // Command A. In other templates, a variable of the same name contains the reasoning of a message.
  ...(source.includes('reasoning is not undefined') && { reasoning }),
  // Seed-OSS has a token budget for reasoning instead of a switch.
  ...(!reasoning && { thinking_budget: 0 }),
  // Hunyuan 3 reasons only with a reasoning effort.
  ...(reasoning && effort === undefined && source.includes("'no_think'") && { reasoning_effort: 'high' }),
})

/** Muse has another name for the reasoning effort. */
export const toReasoningStrength = ({ reasoning_effort: effort }: Variables = {}): Variables =>
  typeof effort === 'string' ? { reasoning_strength: effort } : {}
