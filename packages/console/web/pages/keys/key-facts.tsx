/** The settings of a key. */
import type { ComponentChildren } from 'preact'
import type { ApiKey } from '../../api/types.ts'
import { Fact, Facts } from '../../components/page.tsx'
import { Badge } from '../../components/text/badge.tsx'
import { CopyButton } from '../../components/text/copy-button.tsx'
import { Time } from '../../components/text/time.tsx'
import { listLimits } from '../../limits/limit-names.ts'
import { describeSpendingLimit } from '../../limits/spending-text.ts'
import { KeyStatus } from './key-status.tsx'

export const KeyFacts = ({ of: key }: { readonly of: ApiKey }) => (
  <Facts>
    <Fact name="Status">
      <KeyStatus keyOf={key} />
    </Fact>
    <Fact name="Secret">
      <span class="code">{key.hint}</span>
    </Fact>
    {key.previousSecretExpiresAt !== undefined && (
      <TimeFact name="Previous secret valid until" at={key.previousSecretExpiresAt} />
    )}
    <Fact name="Id">
      <span class="code">{key.id}</span>{' '}
      <CopyButton text={key.id} label="Copy id" kind="plain" isTextHidden />
    </Fact>
    <Fact name="Scopes">
      <Names of={key.scopes} />
    </Fact>
    <Fact name="Models">{key.models ? <Names of={key.models} /> : 'All'}</Fact>
    <Fact name="Tier">{key.tier ?? 'None'}</Fact>
    <Fact name="Limits of the key">
      <LimitList of={key} />
    </Fact>
    {key.tenant !== key.id && <Fact name="Tenant">{key.tenant}</Fact>}
    <Fact name="Created">
      <Time at={key.createdAt} />
    </Fact>
    <TimeFact name="Last use" at={key.lastUsedAt} otherwise="Never" />
    {key.revokedAt ? (
      <TimeFact name="Revoked" at={key.revokedAt} />
    ) : (
      <TimeFact
        name={key.status === 'expired' ? 'Expired' : 'Expires'}
        at={key.expiresAt}
        otherwise="Never"
      />
    )}
  </Facts>
)

const Names = ({ of }: { readonly of: readonly string[] }) => (
  <span class="badges">
    {of.map((name) => (
      <Badge key={name}>{name}</Badge>
    ))}
  </span>
)

const LimitList = ({ of: { limits, spendingLimit } }: { readonly of: ApiKey }) => {
  const entries = [
    ...(spendingLimit ? [['Spending', describeSpendingLimit(spendingLimit)] as const] : []),
    ...listLimits(limits),
  ]
  return entries.length === 0 ? (
    'None'
  ) : (
    <ul>
      {entries.map(([name, value]) => (
        <li key={name}>
          {name}: <span class="number">{value}</span>
        </li>
      ))}
    </ul>
  )
}

const TimeFact = ({
  name,
  at,
  otherwise,
}: {
  readonly name: string
  readonly at: string | undefined
  readonly otherwise?: ComponentChildren
}) => (
  <Fact name={name}>
    {at === undefined ? (
      otherwise
    ) : (
      <>
        <Time at={at} isRelative />{' '}
        <span class="muted">
          (<Time at={at} />)
        </span>
      </>
    )}
  </Fact>
)
