/** Writes a row for each call, however it ends. */

/** @param write stores a row, and may return a promise */
export const createAudit = (write) => ({
  name: 'audit',

  after: (call, { status, error, finishReasons, usage, durationMs }) =>
    write({
      id: call.id,
      time: new Date().toISOString(),
      caller: call.caller?.id ?? null,
      api: call.dialect ?? 'in process',
      kind: call.kind,
      model: call.model,
      status,
      error: error?.code ?? null,
      finishReason: finishReasons[0] ?? null,
      inputTokens: usage?.inputTokens ?? 0,
      outputTokens: usage?.outputTokens ?? 0,
      durationMs: Math.round(durationMs),
    }),
})
