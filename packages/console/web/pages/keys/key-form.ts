/** The form of a key: its texts, and what is sent to the server. */

import type { Scope } from '../../api/session.ts'
import type { ApiKey, KeyChanges, KeySettings, SpendingLimit } from '../../api/types.ts'
import { parseUsd } from '../../format/money.ts'
import { type LimitTexts, parseLimitTexts, toLimitTexts } from '../../limits/limit-form.ts'

export interface KeyForm {
  readonly name: string
  readonly tenant: string
  readonly scopes: readonly Scope[]
  /** One name a line. Empty: all models. */
  readonly models: string
  /** Empty: no tier. */
  readonly tier: string
  readonly limits: LimitTexts
  /** Dollars. Empty: no limit. */
  readonly spendingUsd: string
  readonly spendingPeriod: SpendingLimit['period']
  readonly expiry: Expiry
  /** With the expiry `date`: date and time in the viewer's zone, as `datetime-local` has it. */
  readonly expiresAt: string
}

/** Durations as the server takes them, `never`, or `date` for the field `expiresAt`. */
export type Expiry = 'never' | '7d' | '30d' | '90d' | '365d' | 'date'

export const emptyForm: KeyForm = {
  name: '',
  tenant: '',
  scopes: ['inference'],
  models: '',
  tier: '',
  limits: {},
  spendingUsd: '',
  spendingPeriod: 'month',
  expiry: 'never',
  expiresAt: '',
}

export const toForm = (key: ApiKey): KeyForm => ({
  name: key.name,
  // A key without a tenant is its own.
  tenant: key.tenant === key.id ? '' : key.tenant,
  scopes: key.scopes,
  models: (key.models ?? []).join('\n'),
  tier: key.tier ?? '',
  limits: toLimitTexts(key.limits),
  spendingUsd: key.spendingLimit === undefined ? '' : `${key.spendingLimit.usd}`,
  spendingPeriod: key.spendingLimit?.period ?? 'month',
  expiry: key.expiresAt === undefined ? 'never' : 'date',
  expiresAt: key.expiresAt === undefined ? '' : toLocalInput(new Date(key.expiresAt)),
})

/** Messages by the server's name of the field. */
export type FieldErrors = Readonly<Record<string, string>>

export function checkForm(form: KeyForm): FieldErrors {
  const { errors } = parseLimitTexts(form.limits)
  return {
    ...(form.name.trim() === '' && {
      name: 'Expected a name, such as the program or team that gets the key.',
    }),
    ...(form.scopes.length === 0 && { scopes: 'Expected at least one scope.' }),
    ...Object.fromEntries(Object.entries(errors).map(([path, message]) => [`limits.${path}`, message])),
    ...(form.spendingUsd.trim() !== '' &&
      parseUsd(form.spendingUsd) === undefined && {
        spendingLimit: 'Expected dollars, such as 25 or 12.50.',
      }),
    ...(form.expiry === 'date' &&
      Number.isNaN(Date.parse(form.expiresAt)) && { expiresAt: 'Expected a date and a time.' }),
  }
}

/** Settings of a new key, from a form without errors. */
export function toSettings(form: KeyForm): KeySettings {
  const { name, scopes, tenant, models, tier, limits, spendingLimit, expiresAt } = readForm(form)
  return {
    name,
    scopes: [...scopes],
    ...(tenant && { tenant }),
    ...(models && { models }),
    ...(tier && { tier }),
    ...(limits && { limits }),
    ...(spendingLimit && { spendingLimit }),
    ...(expiresAt && { expiresAt }),
    ...(form.expiry !== 'never' && form.expiry !== 'date' && { expiresIn: form.expiry }),
  }
}

/** The settings that differ from those of the key. `null` removes one. */
export function toChanges(form: KeyForm, key: ApiKey): KeyChanges {
  const before = readForm(toForm(key))
  const after = readForm(form)
  const changed = Object.entries(after)
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof typeof before]))
    .map(([name, value]) => [name, value ?? null])
  if (form.expiry === 'never' || form.expiry === 'date') return Object.fromEntries(changed)
  return { ...Object.fromEntries(changed.filter(([name]) => name !== 'expiresAt')), expiresIn: form.expiry }
}

/** The names of a field with one name a line. */
export const namesOf = (text: string): readonly string[] => text.split(/\s+/).filter((name) => name !== '')

function readForm(form: KeyForm) {
  const models = namesOf(form.models)
  const usd = form.spendingUsd.trim().replace('$', '')
  return {
    name: form.name.trim(),
    scopes: form.scopes,
    tenant: form.tenant.trim() || undefined,
    models: models.length > 0 ? [...models] : undefined,
    tier: form.tier || undefined,
    limits: parseLimitTexts(form.limits).limits,
    spendingLimit: usd === '' ? undefined : { usd, period: form.spendingPeriod },
    expiresAt: form.expiry === 'date' ? new Date(form.expiresAt).toISOString() : undefined,
  }
}

const toLocalInput = (at: Date): string => {
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 19)
}
