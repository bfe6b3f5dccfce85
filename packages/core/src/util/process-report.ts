/** Reads Node's report about this process. */

/** The fields that are used. Each is absent where Node does not know it. */
interface ReadReport {
  readonly header: { readonly glibcVersionRuntime?: string }
  /** Paths of the loaded libraries. */
  readonly sharedObjects?: readonly string[]
}

export function readProcessReport(): ReadReport {
  // `excludeNetwork` is missing in the types of the oldest supported Node.
  const report = process.report as typeof process.report & { excludeNetwork: boolean }
  const { excludeNetwork } = report
  // With the network, the report would look up the names of all connected addresses.
  report.excludeNetwork = true
  try {
    return report.getReport() as ReadReport
  } finally {
    report.excludeNetwork = excludeNetwork
  }
}
