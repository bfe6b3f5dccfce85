/** Options of every adapter, checked before anything is mounted. */
import type { Caller } from '../accounts/auth/caller.ts'
import { defaultBodyLimit } from '../http/message.ts'
import type { RouteTable } from '../http/route.ts'
import { internals, type Llm } from '../llm.ts'
import { checkKeys } from '../options/check.ts'
import { type ByteSize, toBytes } from '../units.ts'
import { adminRoutes, type DialectName, routesFor } from './index.ts'
import type { DialectTable } from './table.ts'

/** @typeParam Source what the framework gives its handlers, such as Express's request */
export interface MountOptions<Source> {
  /** Which public APIs to speak. @default all */
  readonly dialects?: readonly DialectName[] | undefined
  /**
   * How to answer paths that no route has: `pass` leaves them to the app's own routes behind,
   * `error` answers 404 in the dialect of the client.
   *
   * @default `error` under a prefix, `pass` at the root
   */
  readonly unknownRoutes?: 'pass' | 'error' | undefined
  /** The largest request body, in bytes or with a unit: `'8mb'`. @default '32mb' */
  readonly bodyLimit?: ByteSize | undefined
  /**
   * Names the caller of a request, with `createLlm({ auth: 'host' })`. The app's own middleware has identified the user before.
   * Without a caller the request is answered with 401.
   */
  readonly authenticate?: ((source: Source) => Caller | undefined | Promise<Caller | undefined>) | undefined
}

export interface Mount extends RouteTable<Llm> {
  readonly bodyLimit: number
}

export type AdminMountOptions<Source> = Omit<MountOptions<Source>, 'dialects'>

/** For adapters. Throws a `TypeError` that says what was expected. */
export function prepareMount<Source>(llm: Llm, options: MountOptions<Source>): Mount {
  checkKeys('', options, ['dialects', ...adminOptions])
  return prepare(llm, options, () => routesFor(options.dialects))
}

/** The same for the routes of the admin API. */
export function prepareAdminMount<Source>(llm: Llm, options: AdminMountOptions<Source>): Mount {
  checkKeys('', options, adminOptions)
  const mount = prepare(llm, options, adminRoutes)
  checkAdmin(llm)
  return mount
}

const adminOptions = ['unknownRoutes', 'bodyLimit', 'authenticate']

function prepare<Source>(llm: Llm, options: AdminMountOptions<Source>, routes: () => DialectTable): Mount {
  if (typeof llm?.generate !== 'function')
    throw new TypeError(
      `Expected an Llm, got ${llm instanceof Promise ? 'a Promise: write `await createLlm()`' : String(llm)}`,
    )
  const { unknownRoutes = 'pass', bodyLimit = defaultBodyLimit, authenticate } = options
  if (!['pass', 'error'].includes(unknownRoutes))
    throw new TypeError(`Expected \`unknownRoutes\` to be 'pass' or 'error', got '${unknownRoutes}'`)
  checkAuthenticate(llm, authenticate)
  return { ...routes(), bodyLimit: toBytes(bodyLimit) }
}

/** For adapters. Throws a `TypeError` where `authenticate` is missing with `auth: 'host'`, or would never be called. */
export function checkAuthenticate(llm: Llm, authenticate: unknown): void {
  const { access } = llm[internals]
  if (access.auth === 'host' && !authenticate)
    throw new TypeError(
      "With `auth: 'host'`, expected the option `authenticate`, which names the caller of a request",
    )
  if (access.auth !== 'host' && authenticate)
    throw new TypeError(
      `The option \`authenticate\` would never be called, because \`auth\` is '${access.auth}': expected createLlm({ auth: 'host' }), or no \`authenticate\``,
    )
}

/** For adapters. Throws a `TypeError` where there is no database, and so no keys to manage. */
export function checkAdmin({ keys }: Pick<Llm, 'keys'>): void {
  if (!keys.hasDatabase)
    throw new TypeError(
      'The admin API manages keys, and there is no database for them: expected the option `database` of createLlm()',
    )
}
