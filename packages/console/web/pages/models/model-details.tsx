/** One model: what its file and its Modelfile say. */
import { useQuery } from '@tanstack/preact-query'
import { useLocation } from 'wouter-preact'
import { useCan } from '../../api/session.ts'
import { ButtonLink } from '../../components/button.tsx'
import { Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { Card, Fact, Facts, Page, Section } from '../../components/page.tsx'
import { Badge } from '../../components/text/badge.tsx'
import { CodeBlock } from '../../components/text/code.tsx'
import { Time } from '../../components/text/time.tsx'
import { useFilter } from '../../components/use-filter.ts'
import { formatBytes, formatCount } from '../../format/numbers.ts'
import {
  canChat,
  findModel,
  loadedQuery,
  modelsQuery,
  type ShownModel,
  shownQuery,
  useIsBuiltIn,
} from '../../llm/models.ts'
import { describePrice, priceOf } from '../../prices/prices.ts'
import { usePrices } from '../../prices/use-prices.ts'
import { linkToChat, linkToCreate } from './links.ts'
import { placeOf } from './loaded-models.tsx'
import { ModelActions } from './model-actions.tsx'

export function ModelDetailsPage() {
  const [name] = useFilter('model')
  const shown = useQuery(shownQuery(name))
  const parent = { href: '/models', title: 'Models' }
  return (
    <Page
      title={name}
      parent={parent}
      actions={shown.data && <Actions name={name} capabilities={shown.data.capabilities} />}
    >
      {shown.error && <ErrorMessage error={shown.error} onRetry={() => void shown.refetch()} />}
      {shown.isPending && <Loading />}
      {shown.data && <Details name={name} shown={shown.data} />}
    </Page>
  )
}

function Actions({ name, capabilities }: { readonly name: string } & Pick<ShownModel, 'capabilities'>) {
  const [canAsk, canChange] = [useCan('inference'), useCan('models')]
  const [, navigate] = useLocation()
  const isBuiltIn = useIsBuiltIn()
  return (
    <>
      {canAsk && canChat({ capabilities }) && <ButtonLink href={linkToChat(name)}>Chat</ButtonLink>}
      {canChange && (
        <>
          <ButtonLink href={linkToCreate(name)}>Create model from it</ButtonLink>
          <ModelActions
            model={name}
            isBuiltIn={isBuiltIn(name)}
            onDeleted={() => navigate('/models', { replace: true })}
          />
        </>
      )}
    </>
  )
}

function Details({ name, shown }: { readonly name: string; readonly shown: ShownModel }) {
  const { parameters, system, template, license, modelfile } = shown
  return (
    <>
      <Card>
        <ModelFacts name={name} shown={shown} />
      </Card>
      {system && (
        <Section title="System prompt">
          <CodeBlock label="System prompt" text={system} />
        </Section>
      )}
      {parameters && (
        <Section title="Parameters">
          <CodeBlock label="Parameters" text={parameters} />
        </Section>
      )}
      <Section title="Modelfile">
        <CodeBlock label="Modelfile" text={modelfile} />
      </Section>
      <Section title="Chat template">
        <CodeBlock label="Chat template" text={template} />
      </Section>
      {license && (
        <Section title="License">
          <CodeBlock label="License" text={license} />
        </Section>
      )}
    </>
  )
}

function ModelFacts({ name, shown }: { readonly name: string; readonly shown: ShownModel }) {
  const listed = findModel(useQuery(modelsQuery).data, name)
  const loaded = findModel(useQuery(loadedQuery).data, name)
  const isBuiltIn = useIsBuiltIn()(name)
  const prices = usePrices()
  const price = prices && priceOf(prices, name)
  const { details, capabilities, model_info: info } = shown
  const context = listed?.details.context_length ?? info[`${details.family}.context_length`]
  const license = info['general.license']
  return (
    <Facts>
      {listed && <Fact name="Size">{formatBytes(listed.size)}</Fact>}
      <Fact name="Parameters">{details.parameter_size || '–'}</Fact>
      <Fact name="Quantization">{details.quantization_level || '–'}</Fact>
      <Fact name="Architecture">{details.family || '–'}</Fact>
      <Fact name="Context">{typeof context === 'number' ? `${formatCount(context)} tokens` : '–'}</Fact>
      <Fact name="Capabilities">
        <span class="badges">
          {capabilities.map((capability) => (
            <Badge key={capability}>{capability}</Badge>
          ))}
        </span>
      </Fact>
      <Fact name="In memory">{loaded ? `${formatBytes(loaded.size)}, ${placeOf(loaded)}` : 'No'}</Fact>
      {prices && <Fact name="Price of a million tokens">{price ? describePrice(price) : 'No price'}</Fact>}
      {isBuiltIn && (
        <Fact name="Origin">
          <Badge>built in</Badge> (package <code>@modelmount/tiny-model</code>)
        </Fact>
      )}
      {typeof license === 'string' && <Fact name="License">{license}</Fact>}
      {listed && (
        <Fact name="Changed">
          <Time at={listed.modified_at} />
        </Fact>
      )}
      {listed && (
        <Fact name="Digest">
          <span class="code" title={listed.digest}>
            {listed.digest.slice(0, 12)}
          </span>
        </Fact>
      )}
    </Facts>
  )
}
