/** Calls each registry that pulls may use, to see whether it answers. */
import { GuardedFetch } from '../models/registry/guarded-fetch.ts'
import { type LlmOptions, resolveOptions } from '../options.ts'

/** Whether a registry can be reached. */
export interface RegistryReport {
  /** Host of the registry, with a port if it has one. */
  readonly host: string
  /** Absent if the registry answered. Any status counts, since it may require credentials. */
  readonly problem: string | undefined
}

/**
 * Uses the same proxies and limits as pulls.
 * @param timeoutMs time limit for each registry
 */
export async function reachRegistries(
  options: LlmOptions,
  timeoutMs: number,
): Promise<readonly RegistryReport[]> {
  const { hosts, privateHosts, proxy } = resolveOptions(options).store.registries
  const http = new GuardedFetch({ privateHosts, proxy, connectTimeoutMs: timeoutMs })
  const reach = async (url: string, insecure: boolean): Promise<void> => {
    const { body } = await http.fetch(new URL(url), { signal: AbortSignal.timeout(timeoutMs), insecure })
    body.destroy()
  }
  const report = async (host: string): Promise<RegistryReport> => {
    const problem = await reach(`https://${host}/v2/`, false)
      // Pulls from private registries may use http.
      .catch((error: Error) => {
        if (!http.isPrivateHost(host)) throw error
        return reach(`http://${host}/v2/`, true)
      })
      .then(() => undefined, describeProblem)
    return { host, problem }
  }
  const describeProblem = (error: Error): string =>
    error.name === 'TimeoutError' ? `no answer within ${timeoutMs / 1_000} s` : error.message
  try {
    return await Promise.all([...new Set([...hosts, ...privateHosts])].map(report))
  } finally {
    await http.close()
  }
}
