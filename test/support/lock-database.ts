/** Locks an SQLite file for writers, as another program does. Returns a function that unlocks it. */
import { connect } from '../../packages/core/src/storage/sqlite/connection.ts'

export async function lockDatabase(path: string): Promise<() => void> {
  const other = await connect(path, false)
  other.run('BEGIN IMMEDIATE')
  return () => {
    other.rollback()
    other.close()
  }
}
