/** What the holder of a key needs for the first call. */
import { useSession } from '../../api/session.ts'
import type { ApiKey } from '../../api/types.ts'
import { includesModel } from '../../llm/model-names.ts'
import { useModelNames } from '../../llm/models.ts'
import { usePrices } from '../../prices/use-prices.ts'
import { linkToCode } from '../models/links.ts'

export function FirstUse({ of: { models, scopes, spendingLimit } }: { readonly of: ApiKey }) {
  const { apiUrl, scopes: ownScopes } = useSession()
  const names = useModelNames()
  const prices = usePrices()
  const usable = names.filter((name) => includesModel(models ?? [], name))
  const unpriced = spendingLimit && prices ? prices.unpricedModels : []
  const model = usable.find((name) => !unpriced.includes(name)) ?? usable[0]
  const canCall = scopes.includes('inference')
  return (
    <div class="stack">
      {apiUrl !== undefined && canCall && (
        <dl class="pairs">
          <dt>Base URL for OpenAI</dt>
          <dd class="code">{apiUrl}/v1</dd>
          <dt>For Anthropic and Ollama</dt>
          <dd class="code">{apiUrl}</dd>
          {model !== undefined && (
            <>
              <dt>Model</dt>
              <dd class="code">{model}</dd>
            </>
          )}
        </dl>
      )}
      {/* In another tab: this dialog is the only place that shows the secret. */}
      {model !== undefined && canCall && ownScopes.includes('inference') && (
        <p>
          <a href={`#${linkToCode(model)}`} target="_blank" rel="noreferrer">
            Show the code of a first call
          </a>
        </p>
      )}
      <ConsoleLogin canCall={canCall} />
    </div>
  )
}

function ConsoleLogin({ canCall }: { readonly canCall: boolean }) {
  const { auth, canLogOut } = useSession()
  // The host app has its own login.
  if (auth !== 'keys' || !canLogOut) return null
  return (
    <p class="muted">
      The key also logs in to this console at <span class="code">{new URL('.', document.baseURI).href}</span>
      {canCall && ', which shows its limits, spending and usage'}.
    </p>
  )
}
