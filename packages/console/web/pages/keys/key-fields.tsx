/** The fields of a key. */
import { useQuery } from '@tanstack/preact-query'
import type { Scope } from '../../api/session.ts'
import {
  CheckField,
  FieldGroup,
  SelectField,
  TextAreaField,
  TextField,
} from '../../components/form/field.tsx'
import { fieldError } from '../../components/form/form.tsx'
import { Card } from '../../components/page.tsx'
import { LimitFields } from '../../limits/limit-fields.tsx'
import { SpendingFields } from '../../limits/spending-fields.tsx'
import { tiersQuery } from '../../limits/tiers.ts'
import { useModelNames } from '../../llm/models.ts'
import { PriceWarning } from '../../prices/price-warning.tsx'
import { unpricedAmong } from '../../prices/prices.ts'
import { usePrices } from '../../prices/use-prices.ts'
import { type Expiry, type FieldErrors, type KeyForm, namesOf } from './key-form.ts'

export interface KeyFieldsProps {
  readonly form: KeyForm
  readonly onChange: (form: KeyForm) => void
  /** Messages of the page, by field. */
  readonly errors: FieldErrors
  /** Error of the server. */
  readonly error: unknown
}

/** The fields that `errorOf` below covers. Errors about others are shown for the whole form. */
export const keyParams = [
  'name',
  'tenant',
  'scopes',
  'models',
  'tier',
  'limits',
  'spendingLimit',
  'expiresAt',
  'expiresIn',
]

export function KeyFields({ form, onChange, errors, error }: KeyFieldsProps) {
  const prices = usePrices()
  const errorOf = (param: string): string | undefined => errors[param] ?? fieldError(error, param)
  const set =
    <Name extends keyof KeyForm>(name: Name) =>
    (value: KeyForm[Name]) =>
      onChange({ ...form, [name]: value })
  return (
    <>
      <Card>
        <div class="form">
          <TextField
            label="Name"
            hint="The program, person or purpose of the key."
            value={form.name}
            onChange={set('name')}
            error={errorOf('name')}
            maxLength={100}
            required
          />
          <ScopeFields scopes={form.scopes} onChange={set('scopes')} error={errorOf('scopes')} />
          <ModelsField value={form.models} onChange={set('models')} error={errorOf('models')} />
          <ExpiryFields
            form={form}
            onChange={onChange}
            error={errorOf('expiresAt') ?? errorOf('expiresIn')}
          />
        </div>
      </Card>
      <Card>
        <div class="form">
          <h2>Spending and limits</h2>
          <SpendingFields
            texts={{ usd: form.spendingUsd, period: form.spendingPeriod }}
            onChange={({ usd, period }) => onChange({ ...form, spendingUsd: usd, spendingPeriod: period })}
            error={errorOf('spendingLimit')}
            hint="A call that could exceed it is rejected."
            placeholder="No limit"
          />
          {form.spendingUsd.trim() !== '' && prices && (
            <PriceWarning models={unpricedAmong(prices, namesOf(form.models))} />
          )}
          <TierField value={form.tier} onChange={set('tier')} error={errorOf('tier')} />
          <FieldGroup legend="Limits" hint="They take precedence over those of the tier.">
            <LimitFields
              texts={form.limits}
              onChange={set('limits')}
              errorOf={(path) => errorOf(`limits.${path}`)}
            />
          </FieldGroup>
          <details class="more">
            <summary>Limits of each end user, and the tenant</summary>
            <div class="form">
              <FieldGroup
                legend="Each end user"
                hint={
                  <>
                    Calls name their end user with the field <code>user</code> (OpenAI) or{' '}
                    <code>metadata.user_id</code> (Anthropic).
                  </>
                }
              >
                <LimitFields
                  texts={form.limits}
                  onChange={set('limits')}
                  errorOf={(path) => errorOf(`limits.${path}`)}
                  isPerEndUser
                />
              </FieldGroup>
              <TextField
                label="Tenant"
                hint="Keys of one tenant share cached prompts, and their part of the time of each model. Empty: the key alone."
                value={form.tenant}
                onChange={set('tenant')}
                error={errorOf('tenant')}
                maxLength={100}
              />
            </div>
          </details>
        </div>
      </Card>
    </>
  )
}

const scopeTexts = [
  ['inference', 'inference', 'Use models, and see its own usage and limits here.'],
  ['models', 'models', 'Pull, create, delete and unload models.'],
  ['admin:read', 'admin:read', 'See everything in the console, and read the metrics.'],
  ['admin', 'admin', 'Also manage keys and limits.'],
  ['fleet', 'fleet', 'Forward calls of another app, which are neither limited nor charged here.'],
] as const satisfies readonly (readonly [Scope, string, string])[]

const ScopeFields = ({
  scopes,
  onChange,
  error,
}: {
  readonly scopes: readonly Scope[]
  readonly onChange: (scopes: readonly Scope[]) => void
  readonly error: string | undefined
}) => (
  <FieldGroup legend="Scopes">
    {error !== undefined && <p class="field-error">{error}</p>}
    {scopeTexts.map(([scope, label, hint]) => (
      <CheckField
        key={scope}
        label={label}
        hint={hint}
        isChecked={scopes.includes(scope)}
        onChange={(isChecked) =>
          onChange(isChecked ? [...scopes, scope] : scopes.filter((other) => other !== scope))
        }
      />
    ))}
  </FieldGroup>
)

interface TextProps {
  readonly value: string
  readonly onChange: (value: string) => void
  readonly error: string | undefined
}

function ModelsField(props: TextProps) {
  const names = useModelNames()
  const example =
    names.length > 0 ? ` Available: ${names.slice(0, 12).join(', ')}${names.length > 12 ? ', …' : ''}.` : ''
  return (
    <TextAreaField
      {...props}
      label="Models"
      hint={`One name a line. * stands for any characters. Empty: all models.${example}`}
      rows={2}
      spellcheck={false}
    />
  )
}

function TierField(props: TextProps) {
  const tiers = useQuery(tiersQuery).data ?? []
  const names = new Set([...tiers.map(({ name }) => name), ...(props.value === '' ? [] : [props.value])])
  return (
    <SelectField
      {...props}
      label="Tier"
      hint={tiers.length === 0 ? 'The app has none. The page Limits says how to add them.' : undefined}
      options={[['', 'None'], ...[...names].map((name) => [name, name] as const)]}
    />
  )
}

interface FormPartProps {
  readonly form: KeyForm
  readonly onChange: (form: KeyForm) => void
  readonly error: string | undefined
}

const expiryOptions = [
  ['never', 'Never'],
  ['7d', 'In 7 days'],
  ['30d', 'In 30 days'],
  ['90d', 'In 90 days'],
  ['365d', 'In a year'],
  ['date', 'At a date'],
] as const satisfies readonly (readonly [Expiry, string])[]

const ExpiryFields = ({ form, onChange, error }: FormPartProps) => (
  <div class="form-row">
    <SelectField
      label="Expires"
      value={form.expiry}
      onChange={(expiry) => onChange({ ...form, expiry: expiry as Expiry })}
      options={expiryOptions}
    />
    {form.expiry === 'date' && (
      <TextField
        label="Date and time"
        hint="In your time zone."
        type="datetime-local"
        value={form.expiresAt}
        onChange={(expiresAt) => onChange({ ...form, expiresAt })}
        error={error}
      />
    )}
  </div>
)
