/** Pulls that this page of the browser runs. They go on while the viewer looks at other pages. */
import type { QueryClient } from '@tanstack/preact-query'
import { request } from '../../api/client.ts'
import { toApiError, toNetworkError } from '../../api/errors.ts'
import { changeKept, type KeptState, readKept, useKept } from '../../llm/kept-state.ts'
import { modelsKey } from '../../llm/models.ts'
import { readLines } from '../../llm/streams.ts'
import { addLine, startTransfer, type Transfer, type TransferLine } from './transfer.ts'

export interface Pull {
  readonly model: string
  readonly isInsecure: boolean
  readonly transfer: Transfer
  readonly controller: AbortController
  readonly error?: unknown
}

const pulls: KeptState<readonly Pull[]> = { key: ['pulls'], initial: [] }

export const usePulls = () => useKept(pulls)

/** Cancels a pull, or removes one that has failed. */
export function removePull(client: QueryClient, pull: Pull): void {
  pull.controller.abort()
  changeKept(client, pulls, (all) => all.filter(({ model }) => model !== pull.model))
}

/** Resolves to whether the pull was successful. Its errors are kept with it. */
export async function startPull(
  client: QueryClient,
  { model, isInsecure }: Pick<Pull, 'model' | 'isInsecure'>,
): Promise<boolean> {
  const before = readKept(client, pulls).find((pull) => pull.model === model)
  if (before) removePull(client, before)
  const controller = new AbortController()
  changeKept(client, pulls, (all) => [...all, { model, isInsecure, transfer: startTransfer, controller }])
  const change = (changes: Partial<Pull>): void =>
    changeKept(client, pulls, (all) =>
      all.map((pull) => (pull.controller === controller ? { ...pull, ...changes } : pull)),
    )
  try {
    const body = { model, ...(isInsecure && { insecure: true }) }
    await followTransfer('llm/api/pull', body, controller.signal, (transfer) => change({ transfer }))
  } catch (error) {
    if (!controller.signal.aborted) change({ error: toNetworkError(error) })
    return false
  }
  changeKept(client, pulls, (all) => all.filter((pull) => pull.controller !== controller))
  await client.invalidateQueries({ queryKey: modelsKey })
  return true
}

/** Sends a request, and reports its progress. Throws the `ApiError` of the response or of a line. */
export async function followTransfer(
  url: string,
  json: object,
  signal: AbortSignal,
  onChange: (transfer: Transfer) => void,
): Promise<void> {
  let transfer = startTransfer
  const response = await request(url, { json, signal })
  for await (const value of readLines(response)) {
    const line = value as TransferLine
    if (line.error !== undefined) throw toApiError(response.status, line)
    transfer = addLine(transfer, line, performance.now())
    onChange(transfer)
  }
}
