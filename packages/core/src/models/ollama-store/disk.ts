/** File operations of the store, and disk errors as `LlmError`s. */
import type { Stats } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { invalidRequest, LlmError } from '../../errors.ts'

/**
 * Converts file system errors (disk full, no permission, name too long) to `LlmError`. Returns other errors
 * unchanged.
 */
export function toDiskError(cause: unknown): unknown {
  const { code } = (cause ?? {}) as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG')
    return new LlmError('too_large', 'There is no space left on the disk of the models.', {}, { cause })
  if (code === 'ENAMETOOLONG') return invalidRequest('The name is too long for the disk of the models.')
  if (['EACCES', 'EPERM', 'EROFS', 'EEXIST', 'ENOTDIR', 'EISDIR'].includes(code ?? ''))
    return readOnlyError(cause)
  return cause
}

export const readOnlyError = (cause?: unknown): LlmError =>
  new LlmError('permission', 'The folder of the models cannot be written to.', {}, { cause })

/** Returns `undefined` for a file that is missing or cannot be reached. */
export const statOf = (path: string): Promise<Stats | undefined> => stat(path).catch(() => undefined)

export async function withFile<T>(
  path: string,
  flags: string,
  work: (file: FileHandle) => Promise<T>,
): Promise<T> {
  const file = await open(path, flags)
  try {
    return await work(file)
  } finally {
    await file.close()
  }
}

/**
 * Repeats partial writes until all bytes are written.
 *
 * @param position offset in the file. @default where the last write ended
 */
export async function writeAll(file: FileHandle, bytes: Uint8Array, position?: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const at = position === undefined ? null : position + done
    done += (await file.write(bytes, done, bytes.length - done, at)).bytesWritten
  }
}

/** Makes a rename survive a power loss. Does nothing if the system cannot open folders. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path).catch(() => undefined)
  await folder?.sync().catch(() => undefined)
  await folder?.close()
}
