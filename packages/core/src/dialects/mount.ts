/** What every adapter is told, checked before anything is mounted: a wrong option is a mistake in the set-up. */
import type { Caller } from '../accounts/auth/caller.ts'
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
   * Paths that no route of ours has: `pass` leaves them to the app's own routes behind,
   * `error` answers 404 in the dialect of the client.
   *
   * @default `error` under a prefix, `pass` at the root
   */
  readonly unknownRoutes?: 'pass' | 'error' | undefined
  /** The largest request body, in bytes or with a unit: `'8mb'`. @default '32mb' */
  readonly bodyLimit?: ByteSize | undefined
  /** With `createLlm({ auth: 'host' })`: who calls, from what the app's own middleware has found out. Nobody gets 401. */
  readonly caller?: ((source: Source) => Caller | undefined | Promise<Caller | undefined>) | undefined
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

const adminOptions = ['unknownRoutes', 'bodyLimit', 'caller']

function prepare<Source>(llm: Llm, options: AdminMountOptions<Source>, routes: () => DialectTable): Mount {
  if (typeof llm?.generate !== 'function')
    throw new TypeError(
      `Expected an Llm, got ${llm instanceof Promise ? 'a Promise: write `await createLlm()`' : String(llm)}`,
    )
  const { unknownRoutes = 'pass', bodyLimit = '32mb', caller } = options
  if (!['pass', 'error'].includes(unknownRoutes))
    throw new TypeError(`Expected \`unknownRoutes\` to be 'pass' or 'error', got '${unknownRoutes}'`)
  checkCaller(llm, caller)
  return { ...routes(), bodyLimit: toBytes(bodyLimit) }
}

/** For adapters. Throws a `TypeError` where nobody says who calls, and where what says it would never be asked. */
export function checkCaller(llm: Llm, caller: unknown): void {
  const { access } = llm[internals]
  if (access.auth === 'host' && !caller)
    throw new TypeError("With `auth: 'host'`, expected the option `caller` to say who calls")
  if (access.auth !== 'host' && caller)
    throw new TypeError(
      `The option \`caller\` says who calls, but \`auth\` is '${access.auth}', which would not ask it: expected createLlm({ auth: 'host' }), or no \`caller\``,
    )
}

/** For adapters. Throws a `TypeError` where there are no keys to be managed. */
export function checkAdmin({ keys }: Pick<Llm, 'keys'>): void {
  if (!keys.hasDatabase)
    throw new TypeError(
      'The admin API manages keys, and nothing keeps any: expected the option `database` of createLlm()',
    )
}
