/** The results of a batch: the first ones, and all of them as a file. */
import { useQuery } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import { request } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { DownloadLink } from '../../components/download-link.tsx'
import { Loading } from '../../components/empty-state.tsx'
import { ErrorMessage } from '../../components/error-message.tsx'
import { Section } from '../../components/page.tsx'
import { CodeBlock } from '../../components/text/code.tsx'
import type { Batch } from './queries.ts'
import { prettify, readFirstLines, resultName } from './results.ts'

const resultsUrl = (id: string): string => `admin/batches/${encodeURIComponent(id)}/results`

export function BatchResults({ batch }: { readonly batch: Batch }) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <Section
      title="Results"
      description="One JSON object a line, in the format of the API that the batch was created with."
      actions={
        <>
          {!isOpen && <Button onClick={() => setIsOpen(true)}>Preview</Button>}
          <DownloadLink url={resultsUrl(batch.id)} fileName={`${batch.id}.jsonl`}>
            Download
          </DownloadLink>
        </>
      }
    >
      {isOpen && <Preview id={batch.id} />}
    </Section>
  )
}

function Preview({ id }: { readonly id: string }) {
  const preview = useQuery({
    queryKey: ['batch-results', id],
    queryFn: async ({ signal }) => {
      const { body } = await request(resultsUrl(id), { signal })
      return body === null ? { lines: [], hasMore: false } : readFirstLines(body)
    },
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (preview.error) return <ErrorMessage error={preview.error} onRetry={() => void preview.refetch()} />
  if (preview.data === undefined) return <Loading />
  const { lines, hasMore } = preview.data
  if (lines.length === 0) return <p class="muted">The batch has no results.</p>
  return (
    <>
      <ul class="batch-results">
        {lines.map((line, index) => (
          <li key={`${index} ${resultName(line, index)}`}>
            <details>
              <summary>{resultName(line, index)}</summary>
              <CodeBlock text={prettify(line)} label={resultName(line, index)} />
            </details>
          </li>
        ))}
      </ul>
      {hasMore && <p class="muted">These are the first {lines.length} results. The file has all of them.</p>}
    </>
  )
}
