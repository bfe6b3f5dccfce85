/** Describes calls for the events of the diagnostics channels, and for the log. */

import type { Call } from '../calls/call.ts'
import type { DiagnosedCall } from './events.ts'

export const describeCall = (call: Call): DiagnosedCall => ({
  id: call.id,
  kind: call.kind,
  dialect: call.dialect,
  route: call.route,
  requestId: call.requestId,
  model: call.modelName,
  isKnownModel: call.model !== undefined,
  alias: call.alias,
  caller: call.caller?.id,
  key: call.caller?.key?.id,
  tenant: call.tenant,
  isBackground: call.isBackground,
  isBatchItem: call.batchItem !== undefined,
})
