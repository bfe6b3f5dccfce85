/** A pull or a creation of a model, as its progress arrives. */

/** A line of `POST /api/pull` and `POST /api/create`. */
export interface TransferLine {
  readonly status?: string
  readonly error?: string
  readonly digest?: string
  readonly total?: number
  readonly completed?: number
}

export interface Transfer {
  readonly status: string
  /** Bytes of files, by their digests. */
  readonly files: Readonly<Record<string, { readonly total: number; readonly completed: number }>>
  /** The first report of bytes, in ms of `performance.now()`. A resumed pull does not begin at 0. */
  readonly first?: { readonly at: number; readonly completed: number }
}

export const startTransfer: Transfer = { status: 'Starting', files: {} }

export function addLine(transfer: Transfer, line: TransferLine, now: number): Transfer {
  const { status = transfer.status, digest, total, completed = 0 } = line
  if (digest === undefined || total === undefined) return { ...transfer, status }
  const files = { ...transfer.files, [digest]: { total, completed } }
  const first = transfer.first ?? { at: now, completed: sum(files).completed }
  return { status, files, first }
}

export interface TransferProgress {
  readonly completed: number
  readonly total: number
  readonly bytesPerSecond?: number
  readonly remainingMs?: number
}

/** Undefined as long as no size is known. */
export function progressOf({ files, first }: Transfer, now: number): TransferProgress | undefined {
  const { completed, total } = sum(files)
  if (first === undefined || total === 0) return undefined
  const bytesPerSecond = ((completed - first.completed) * 1_000) / (now - first.at)
  if (!(bytesPerSecond > 0) || !Number.isFinite(bytesPerSecond)) return { completed, total }
  return { completed, total, bytesPerSecond, remainingMs: ((total - completed) * 1_000) / bytesPerSecond }
}

function sum(files: Transfer['files']): { readonly total: number; readonly completed: number } {
  const all = Object.values(files)
  return {
    total: all.reduce((total, file) => total + file.total, 0),
    completed: all.reduce((completed, file) => completed + file.completed, 0),
  }
}
