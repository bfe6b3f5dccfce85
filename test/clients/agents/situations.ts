/** What each SDK is tried in, and how its scripts report the results. */

export const situations = ['built-in model', 'tool', 'parallel calls', 'second turn', 'object'] as const

/** The failure in each situation of each client, or null. */
export type Results = Readonly<Record<string, Readonly<Record<string, string | null>>>>

/** Pairs of clients and situations. */
export const pairsOf = (
  clients: readonly string[],
): readonly (readonly [client: string, situation: string])[] =>
  clients.flatMap((client) => situations.map((situation) => [client, situation] as const))

/** The name of a client with the version of its package, which is the name before the comma. */
export async function labelOf(
  client: string,
  versionOf: (packageName: string) => string | Promise<string>,
): Promise<string> {
  const [packageName = '', ...api] = client.split(', ')
  return [`${packageName} ${await versionOf(packageName)}`, ...api].join(', ')
}
