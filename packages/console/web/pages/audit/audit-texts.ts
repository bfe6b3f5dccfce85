/** Texts and filters of the audit. */

/** Operations of the admin API that change something. Others still appear in the list, by their name. */
export const actionNames = [
  'createKey',
  'updateKey',
  'rotateKey',
  'revokeKey',
  'createLimitRequest',
  'approveLimitRequest',
  'refuseLimitRequest',
  'cancelCall',
  'cancelBatch',
  'deleteTenant',
] as const

/** `createLimitRequest` becomes `Create limit request`. */
export function nameAction(action: string): string {
  const words = action.replaceAll(/(?<=[a-z\d])(?=[A-Z])/g, ' ').toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** The beginning of a day in the viewer's zone, as an ISO string. Empty for no day. */
export const toDayStart = (day: string): string => toIso(`${day}T00:00:00`)

/** The beginning of the next day in the viewer's zone. */
export function toDayEnd(day: string): string {
  const at = new Date(`${day}T00:00:00`)
  // By the calendar: days with a change of the clocks have 23 or 25 hours.
  at.setDate(at.getDate() + 1)
  return Number.isNaN(at.getTime()) ? '' : at.toISOString()
}

const toIso = (local: string): string => {
  const at = new Date(local)
  return Number.isNaN(at.getTime()) ? '' : at.toISOString()
}
