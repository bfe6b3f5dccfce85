/** One request for higher limits. */
import type { ComponentChildren } from 'preact'
import { Link } from 'wouter-preact'
import type { LimitRequest } from '../../api/types.ts'
import { Time } from '../../components/text/time.tsx'
import { DecisionText } from '../../limits/decision-text.tsx'
import { RequestStatus } from '../../limits/request-status.tsx'
import { useKey } from '../keys/queries.ts'
import { RequestChanges } from './request-changes.tsx'

export interface RequestCardProps {
  readonly request: LimitRequest
  /** Buttons. */
  readonly children: ComponentChildren
}

export function RequestCard({ request, children }: RequestCardProps) {
  const { keyId, keyName, reason, status, createdAt, decidedBy } = request
  return (
    <article class="card request" aria-label={`Request of ${keyName}`}>
      <header class="section-header">
        <div>
          <h3>
            <Link href={`/keys/${keyId}`}>{keyName}</Link>
          </h3>
          <p class="muted">
            Asked <Time at={createdAt} isRelative />
          </p>
        </div>
        {status === 'pending' ? children : <RequestStatus status={status} />}
      </header>
      <RequestChanges request={request} />
      {reason !== '' && <blockquote>{reason}</blockquote>}
      <DecisionText request={request} by={decidedBy && <CallerName id={decidedBy} />} />
    </article>
  )
}

/** Callers are keys or users of the host app. */
const CallerName = ({ id }: { readonly id: string }) =>
  id.startsWith('key_') ? <NameOfKey id={id} /> : <span>{id}</span>

function NameOfKey({ id }: { readonly id: string }) {
  const key = useKey(id).data
  return key ? <Link href={`/keys/${id}`}>{key.name}</Link> : <span class="code">{id}</span>
}
