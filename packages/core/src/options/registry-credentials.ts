/** Checks the option `store.credentials`. Its errors never contain a value. */
import { checkKeys, checkObject, expandHome } from './check.ts'

/**
 * Credentials of one registry: username and password, or a token that is sent as it is. The registry may exchange
 * username and password for a token.
 */
export type RegistryLogin =
  | {
      readonly username: string
      readonly password: string
      /**
       * Origin of the token server, such as `https://auth.example.com`, which gets username and password, too.
       *
       * @default the origin of the registry
       */
      readonly realm?: string | undefined
    }
  | { readonly token: string }

export interface ResolvedCredentials {
  /** By origin. */
  readonly entries: Readonly<Record<string, RegistryLogin>>
  /** Path of a file in the format of `~/.docker/config.json`. */
  readonly file: string | undefined
}

/** @param hosts all registries of the app, as `host` or `host:port` */
export function resolveCredentials(
  given: string | Readonly<Record<string, RegistryLogin>> | undefined,
  hosts: readonly string[],
  { REGISTRY_AUTH_FILE }: NodeJS.ProcessEnv,
): ResolvedCredentials {
  if (given === undefined) return { entries: {}, file: REGISTRY_AUTH_FILE || undefined }
  if (typeof given === 'string') {
    if (given !== '') return { entries: {}, file: expandHome(given) }
    throw new TypeError('Expected `store.credentials` to be the path of a file, or credentials by host')
  }
  checkObject('store.credentials', given)
  const allowed = hosts.flatMap((host) => [originOf(`https://${host}`), originOf(`http://${host}`)])
  const entries = Object.entries(given).map(([host, login]) => {
    const origin = originOf(host.includes('://') ? host : `https://${host}`)
    if (!origin || !allowed.includes(origin))
      throw new TypeError(
        `Expected \`store.credentials\` to have hosts of \`store.registries\` or \`store.privateRegistries\`, got '${host}'`,
      )
    return [origin, checkLogin(`store.credentials['${host}']`, login)] as const
  })
  return { entries: Object.fromEntries(entries), file: undefined }
}

function checkLogin(option: string, login: RegistryLogin): RegistryLogin {
  checkObject(option, login)
  if ('token' in login) {
    checkKeys(`${option}.`, login, ['token'])
    if (typeof login.token === 'string' && /^[\x21-\x7e]+$/.test(login.token)) return login
    throw new TypeError(`Expected \`${option}.token\` to be a text of ASCII characters without spaces`)
  }
  checkKeys(`${option}.`, login, ['username', 'password', 'realm'])
  const { username, password, realm } = login
  if (typeof username !== 'string' || username === '' || username.includes(':'))
    throw new TypeError(`Expected \`${option}.username\` to be a text without a colon`)
  if (typeof password !== 'string' || password === '')
    throw new TypeError(`Expected \`${option}.password\` to be a text`)
  if (realm === undefined) return { username, password }
  const origin = originOf(realm)
  if (origin === undefined || !/^https?:/.test(origin))
    throw new TypeError(
      `Expected \`${option}.realm\` to be an origin such as 'https://auth.example.com', got '${realm}'`,
    )
  return { username, password, realm: origin }
}

const originOf = (url: string): string | undefined => (URL.canParse(url) ? new URL(url).origin : undefined)
