/** The options of `modelmount db` that name the database. */
import { existingDatabase } from '../database.ts'

export interface DatabaseOptions {
  /** The folder with `modelmount.db`, or `postgres://…`. @default the folder of models */
  readonly data?: string
  /** A path or `postgres://…`, instead of `data`. */
  readonly database?: string
}

export const locationOf = ({ data, database }: DatabaseOptions): string => database ?? existingDatabase(data)
