/** Package entry point `@modelmount/core/adapter`: exports for the adapter packages. */

export type { Access } from '../accounts/auth/access.ts'
export { LlmError, statusOf } from '../errors.ts'
export { retryHeaders } from '../limits/headers.ts'
export { internals } from '../llm.ts'
export { resolveCloseOptions } from '../options/close.ts'
export { toBytes } from '../units.ts'
export { findPackageFile } from '../util/package-file.ts'
export { checkAdmin, checkAuthenticate, isLlm } from './check-mount.ts'
export { AuthenticateError } from './dialect.ts'
export { dialectNames } from './index.ts'
export {
  type AdminMountOptions,
  type HealthMountOptions,
  type MetricsMountOptions,
  type Mount,
  type MountOptions,
  prepareAdminMount,
  prepareHealthMount,
  prepareMetricsMount,
  prepareMount,
  prepareTable,
  type TableMountOptions,
} from './mount.ts'
export type { DialectTable } from './table.ts'
