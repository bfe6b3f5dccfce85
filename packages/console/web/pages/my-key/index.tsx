/** What the viewer's own key may do, has used, and has asked for. */
import { useQuery } from '@tanstack/preact-query'
import { useSession } from '../../api/session.ts'
import { Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { Card, Fact, Facts, Page, Section } from '../../components/page.tsx'
import { DailyUsage } from '../../limits/daily-usage.tsx'
import { LimitMeters } from '../../limits/limit-meters.tsx'
import { SpendingBar } from '../../limits/spending.tsx'
import { KeyFacts } from '../keys/key-facts.tsx'
import { MyRequests } from './my-requests.tsx'
import { limitsQuery, type Me, meQuery } from './queries.ts'

export default function MyKey() {
  const me = useQuery(meQuery)
  if (me.data === undefined) {
    return (
      <Page title="My key">
        {me.error ? <ErrorMessage error={me.error} onRetry={() => void me.refetch()} /> : <Loading />}
      </Page>
    )
  }
  return <MyPage me={me.data} />
}

function MyPage({ me: { caller, key, limits } }: { readonly me: Me }) {
  const { apiUrl } = useSession()
  return (
    <Page title={key ? 'My key' : 'My usage'} description={key?.name}>
      <Card>
        {key ? (
          <KeyFacts of={key} />
        ) : (
          <Facts>
            <Fact name="Caller">{caller.id}</Fact>
            <Fact name="Scopes">{caller.scopes.join(', ')}</Fact>
          </Facts>
        )}
      </Card>
      {key?.spending && (
        <Section title="Spending">
          <Card>
            <SpendingBar name={key.name} spending={key.spending} isDetailed />
          </Card>
        </Section>
      )}
      <LimitsNow />
      {key && <MyRequests current={{ limits, spendingLimit: key.spendingLimit }} />}
      <Section title="Usage of the last 30 days">
        <DailyUsage queryKey={['my-usage']} url="admin/me/usage" />
      </Section>
      {apiUrl !== undefined && (
        <Section title="Use it" description="Base URLs for clients. Set the key as their API key.">
          <Card>
            <Facts>
              <Fact name="OpenAI">
                <span class="code">{apiUrl}/v1</span>
              </Fact>
              <Fact name="Anthropic, Ollama">
                <span class="code">{apiUrl}</span>
              </Fact>
            </Facts>
          </Card>
        </Section>
      )}
    </Page>
  )
}

function LimitsNow() {
  const limits = useQuery(limitsQuery)
  if (limits.error) return <ErrorMessage error={limits.error} onRetry={() => void limits.refetch()} />
  if (limits.data === undefined || limits.data.length === 0) return null
  return (
    <Section title="Limits now">
      <Card>
        <LimitMeters limits={limits.data} />
      </Card>
    </Section>
  )
}
