/** All models: those in memory, those that are pulled now, and those on disk. */
import { useQuery } from '@tanstack/preact-query'
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { useCan } from '../../api/session.ts'
import { Button, ButtonLink } from '../../components/button.tsx'
import { EmptyState, Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { Page, Section } from '../../components/page.tsx'
import { type Column, DataTable } from '../../components/table/data-table.tsx'
import { Badge } from '../../components/text/badge.tsx'
import { useFilter } from '../../components/use-filter.ts'
import { formatBytes, formatCount } from '../../format/numbers.ts'
import { canChat, type Model, modelsQuery, useIsBuiltIn } from '../../llm/models.ts'
import { PriceWarning } from '../../prices/price-warning.tsx'
import { describePrice, formatPrice, type PriceReport, priceOf } from '../../prices/prices.ts'
import { usePrices } from '../../prices/use-prices.ts'
import { Downloads } from './downloads.tsx'
import { linkTo, linkToChat } from './links.ts'
import { LoadedModels } from './loaded-models.tsx'
import { ModelActions } from './model-actions.tsx'
import { PullDialog } from './pull-dialog.tsx'

export function ModelList() {
  const canChange = useCan('models')
  const canList = useCan('inference')
  const models = useQuery({ ...modelsQuery, enabled: canList })
  const [pull, setPull] = useFilter('pull')
  const actions = canChange && (
    <>
      <ButtonLink href="/models/new">Create model</ButtonLink>
      <Button kind="primary" icon="download" onClick={() => setPull('1')}>
        Pull model
      </Button>
    </>
  )
  return (
    <Page
      title="Models"
      description={
        canChange
          ? 'Models of this app, on its disk and in its memory.'
          : 'Models of this app. To pull, create, load or delete models, log in with a key that has the scope models.'
      }
      actions={actions || undefined}
    >
      <Downloads />
      {models.error && <ErrorMessage error={models.error} onRetry={() => void models.refetch()} />}
      {!canList && <CannotList />}
      {canList && models.isPending && <Loading />}
      {models.data && models.data.length > 0 && <LoadedModels />}
      {models.data && (
        <Section title="On disk">
          <AllModels models={models.data} actions={actions || undefined} />
        </Section>
      )}
      {canChange && pull !== '' && <PullDialog onClose={() => setPull('')} />}
    </Page>
  )
}

function AllModels({
  models,
  actions,
}: {
  readonly models: readonly Model[]
  readonly actions: ComponentChildren
}) {
  const [canChange, canAsk] = [useCan('models'), useCan('inference')]
  const isBuiltIn = useIsBuiltIn()
  const prices = usePrices()
  const columns = useMemo(() => {
    const all = [nameColumn(isBuiltIn), ...facts, ...(prices ? [priceColumn(prices)] : [])]
    return canChange || canAsk ? [...all, actionsColumn(canAsk, canChange, isBuiltIn)] : all
  }, [canChange, canAsk, isBuiltIn, prices])
  return models.length === 0 ? (
    <EmptyState title="No models yet" icon="models" actions={actions}>
      <p>
        {actions
          ? 'Pull a model from a registry, put a GGUF file into the folder of models, or install the package '
          : 'Ask whoever runs this app for a model, such as the package '}
        <code>@modelmount/tiny-model</code>, a small one for first tries.
      </p>
    </EmptyState>
  ) : (
    <>
      <DataTable label="Models on disk" columns={columns} rows={models} rowId={({ name }) => name} />
      {prices && <PriceWarning models={prices.unpricedModels} />}
    </>
  )
}

const CannotList = () => (
  <EmptyState title="Your key cannot list models" icon="models">
    <p>
      Add the scope <code>inference</code> to it, which lists, shows and loads models. With the scope{' '}
      <code>models</code> alone, you can pull and create them.
    </p>
  </EmptyState>
)

type IsBuiltIn = (name: string) => boolean

const nameColumn = (isBuiltIn: IsBuiltIn): Column<Model> => ({
  id: 'name',
  header: 'Name',
  cell: ({ name }) => (
    <>
      <Link href={linkTo(name)} class="model-name">
        {name}
      </Link>{' '}
      {isBuiltIn(name) && <Badge>built in</Badge>}
    </>
  ),
  sortValue: ({ name }) => name,
})

const facts: readonly Column<Model>[] = [
  {
    id: 'size',
    header: 'Size',
    align: 'end',
    cell: ({ size }) => formatBytes(size),
    sortValue: ({ size }) => size,
  },
  {
    id: 'parameters',
    header: 'Parameters',
    cell: ({ details: { parameter_size: parameters, quantization_level: quantization } }) =>
      [parameters, quantization].filter(Boolean).join(', ') || <span class="muted">–</span>,
  },
  {
    id: 'context',
    header: 'Context',
    align: 'end',
    cell: ({ details: { context_length: context } }) =>
      context === undefined ? <span class="muted">–</span> : formatCount(context),
    sortValue: ({ details }) => details.context_length ?? 0,
  },
  {
    id: 'capabilities',
    header: 'Capabilities',
    cell: ({ capabilities }) =>
      capabilities === undefined ? (
        <Badge tone="warning">unreadable file</Badge>
      ) : (
        <span class="badges">
          {capabilities.map((capability) => (
            <Badge key={capability}>{capability}</Badge>
          ))}
        </span>
      ),
  },
]

const priceColumn = (prices: PriceReport): Column<Model> => ({
  id: 'price',
  header: 'Price per million',
  cell: ({ name }) => {
    const price = priceOf(prices, name)
    return price ? (
      <span class="number" title={`Of a million tokens: ${describePrice(price)}`}>
        {formatPrice(price)}
      </span>
    ) : (
      <span class="muted">No price</span>
    )
  },
})

const actionsColumn = (canAsk: boolean, canChange: boolean, isBuiltIn: IsBuiltIn): Column<Model> => ({
  id: 'actions',
  header: 'Actions',
  isHeaderHidden: true,
  align: 'end',
  cell: (model) => (
    <div class="actions row-actions">
      {canAsk && canChat(model) && (
        <Link
          class="button secondary small"
          href={linkToChat(model.name)}
          aria-label={`Chat with ${model.name}`}
        >
          Chat
        </Link>
      )}
      {canChange && <ModelActions model={model.name} isSmall isBuiltIn={isBuiltIn(model.name)} />}
    </div>
  ),
})
