/** Routes of Ollama's cloud. They respond as if the cloud was disabled. Shape: Ollama `server/routes.go`. */
import { LlmError } from '../../errors.ts'
import { json } from '../../http/respond.ts'
import type { Handler } from '../dialect.ts'

/** `GET /api/status` */
export const status: Handler = async () => json({ cloud: { disabled: true, source: 'env' } })

/** `POST /api/me` */
export const account: Handler = async () => json({ error: 'account unavailable' }, 503)

/** `POST /api/signout`, `DELETE /api/user/keys/:key`: always fails, since no user is signed in. */
export const signOut: Handler = async () => json({ error: 'there was an error signing out' }, 500)

/** `GET /api/experimental/model-recommendations` */
export const recommendations: Handler = async () => json({ recommendations: [] })

/** `POST /api/experimental/web_search`, `POST /api/experimental/web_fetch` */
export const webSearch: Handler = async () => {
  throw cloudDisabled('web search is unavailable')
}
export const webFetch: Handler = async () => {
  throw cloudDisabled('web fetch is unavailable')
}

/** Clients match on this text. */
export const cloudDisabled = (feature: string): LlmError =>
  new LlmError('permission', `ollama cloud is disabled: ${feature}`)
