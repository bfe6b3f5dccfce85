/** The entry point `@modelmount/core/database`: backs up and checks the database of the option `database`. */

export { type BackupOptions, backupDatabase } from './backup.ts'
export { type CheckOptions, checkDatabase, type DatabaseCheck, type SchemaState } from './check.ts'
export { expectCurrentSchema } from './current-schema.ts'
export { expectWritable } from './expect-writable.ts'
