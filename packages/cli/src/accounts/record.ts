/** Records the changes of commands in the audit log of the database that they open. */
import type { Llm } from '@modelmount/core'

/** @param action the `operationId` of the same change in the admin API */
export const record = <Result>(
  llm: Llm,
  action: string,
  change: Omit<Parameters<typeof llm.audit.record<Result>>[0], 'caller' | 'action'>,
  make: () => Promise<Result>,
): Promise<Result> => llm.audit.record({ caller: { id: 'command line' }, action, ...change }, make)
