/** Checks how many files and connections a process may have open. */
import { type Finding, findingsOf } from './finding.ts'

const { ok, warning, problem } = findingsOf('open files')

/** Each connection of a client is an open file. */
const recommended = 4_096
const least = 512

const fix = 'ulimit -n 65536   # systemd: LimitNOFILE=65536; Docker: docker run --ulimit nofile=65536'

/** @param limit undefined where there is none */
export function checkOpenFiles(limit = readLimit()): Finding {
  if (limit === undefined || limit >= recommended)
    return ok(limit === undefined ? 'No limit' : `Up to ${limit}`)
  return limit >= least
    ? warning(`Up to ${limit}, which limits the number of clients at the same time.`, fix)
    : problem(`Up to ${limit}, which is too few for a server.`, fix)
}

/** Node.js raises the soft limit to the hard one when it starts. */
function readLimit(): number | undefined {
  const { userLimits } = process.report.getReport() as {
    readonly userLimits?: { readonly open_files?: { readonly soft: number | 'unlimited' } }
  }
  const soft = userLimits?.open_files?.soft
  return typeof soft === 'number' ? soft : undefined
}
