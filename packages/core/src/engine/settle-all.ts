/** Waits for all promises, and rejects with the first error. */
export async function settleAll<Value>(promises: readonly Promise<Value>[]): Promise<readonly Value[]> {
  await Promise.allSettled(promises)
  return Promise.all(promises)
}
