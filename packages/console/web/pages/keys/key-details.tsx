/** One key: settings, spending, state of its limits, usage, and what can be done with it. */
import { useQuery } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { admin, read } from '../../api/client.ts'
import { useCan } from '../../api/session.ts'
import type { ApiKey } from '../../api/types.ts'
import { Button, ButtonLink } from '../../components/button.tsx'
import { Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { Card, Page, Section } from '../../components/page.tsx'
import { DailyUsage } from '../../limits/daily-usage.tsx'
import { LimitMeters } from '../../limits/limit-meters.tsx'
import { SpendingBar } from '../../limits/spending.tsx'
import { ExpireSecrets } from './expire-secrets.tsx'
import { KeyFacts } from './key-facts.tsx'
import { keyQuery } from './queries.ts'
import { RevokeKey } from './revoke-key.tsx'
import { RotateKey } from './rotate-key.tsx'

export function KeyDetails({ id }: { readonly id: string }) {
  const key = useQuery({ ...keyQuery(id), refetchInterval: refreshMs })
  const parent = { href: '/keys', title: 'Keys' }
  if (key.data === undefined) {
    return (
      <Page title="Key" parent={parent}>
        {key.error ? <ErrorMessage error={key.error} onRetry={() => void key.refetch()} /> : <Loading />}
      </Page>
    )
  }
  return (
    <Page title={key.data.name} parent={parent} actions={<KeyActions of={key.data} />}>
      {key.error && <ErrorMessage error={key.error} />}
      <Card>
        <KeyFacts of={key.data} />
      </Card>
      {key.data.spending && (
        <Section title="Spending">
          <Card>
            <SpendingBar name={key.data.name} spending={key.data.spending} isDetailed />
          </Card>
        </Section>
      )}
      {key.data.status === 'active' && <LimitSection of={key.data} />}
      <Section
        title="Usage of the last 30 days"
        actions={<ButtonLink href={`/usage?key=${id}`}>Show all usage</ButtonLink>}
      >
        <DailyUsage key={id} queryKey={['usage', 'days', id]} url="admin/usage" filter={{ key: id }} />
      </Section>
    </Page>
  )
}

function KeyActions({ of: key }: { readonly of: ApiKey }) {
  const [open, setOpen] = useState<'rotate' | 'expire' | 'revoke' | undefined>()
  const close = (): void => setOpen(undefined)
  if (!useCan('admin') || key.status === 'revoked') return null
  return (
    <>
      <ButtonLink href={`/keys/${key.id}/edit`}>Edit</ButtonLink>
      <Button onClick={() => setOpen('rotate')}>Rotate</Button>
      {key.previousSecretExpiresAt !== undefined && (
        <Button onClick={() => setOpen('expire')}>Expire previous secrets</Button>
      )}
      <Button kind="caution" onClick={() => setOpen('revoke')}>
        Revoke
      </Button>
      {open === 'rotate' && <RotateKey of={key} onClose={close} />}
      {open === 'expire' && <ExpireSecrets of={key} onClose={close} />}
      {open === 'revoke' && <RevokeKey of={key} onClose={close} />}
    </>
  )
}

const refreshMs = 5_000

function LimitSection({ of: { id } }: { readonly of: ApiKey }) {
  const limits = useQuery({
    queryKey: ['keys', 'limits', id],
    queryFn: ({ signal }) => read(admin.GET('/keys/{id}/limits', { params: { path: { id } }, signal })),
    refetchInterval: refreshMs,
  })
  if (limits.error) return <ErrorMessage error={limits.error} onRetry={() => void limits.refetch()} />
  if (limits.data === undefined || limits.data.data.length === 0) return null
  return (
    <Section title="Limits now">
      <Card>
        <LimitMeters limits={limits.data.data} />
      </Card>
    </Section>
  )
}
