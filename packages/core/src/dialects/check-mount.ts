/** Checks an `Llm` and the option `authenticate` before routes are mounted. Each check throws a `TypeError`. */
import { internals, type Llm } from '../llm.ts'

/** Expects an `Llm`, and `authenticate` if and only if its `auth` is `host`. */
export function checkMount(llm: Llm, authenticate: unknown): void {
  checkLlm(llm)
  checkAuthenticate(llm, authenticate)
}

export function checkLlm(llm: Llm): void {
  if (typeof llm?.generate !== 'function')
    throw new TypeError(
      `Expected an Llm, got ${llm instanceof Promise ? 'a Promise: write `await createLlm()`' : String(llm)}`,
    )
}

/** Whether an object is an `Llm`, and not a fake of a test with some of its methods. */
export const isLlm = (value: object): value is Llm => internals in value

/** Throws if `authenticate` is missing with `auth: 'host'`, or is set with another `auth`. */
export function checkAuthenticate(llm: Llm, authenticate: unknown): void {
  const { access } = llm[internals]
  if (access.auth === 'host' && !authenticate)
    throw new TypeError(
      "With `auth: 'host'`, expected the option `authenticate`, which returns the caller of a request: `authenticate: (req) => req.user && { id: req.user.id }`",
    )
  if (access.auth !== 'host' && authenticate)
    throw new TypeError(
      `The option \`authenticate\` would never be called, because \`auth\` is '${access.auth}': expected createLlm({ auth: 'host' }), also for the Llm of a test, or no \`authenticate\``,
    )
}

/** Throws without a database, since the admin API manages the keys in it. */
export function checkAdmin({ keys }: Pick<Llm, 'keys'>): void {
  if (!keys.hasDatabase)
    throw new TypeError(
      'The admin API needs a database for its keys: expected the option `database` of createLlm()',
    )
}
