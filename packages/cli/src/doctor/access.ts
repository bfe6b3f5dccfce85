import { accessSync, constants } from 'node:fs'

export const canRead = (folder: string): boolean => canAccess(folder, constants.R_OK | constants.X_OK)

export const canWrite = (path: string): boolean => canAccess(path, constants.W_OK)

/** Whether this user may access a path. False for a missing one. */
function canAccess(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false
  }
}
