/** Credentials for registries. Each belongs to one origin, and goes nowhere else. */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { LlmError } from '../../errors.ts'

export type RegistryCredentials =
  | {
      readonly username: string
      readonly password: string
      /** Origin of the token server, if it is not the registry. It gets username and password, too. */
      readonly realm?: string | undefined
    }
  | { readonly token: string }

export interface CredentialSources {
  /** Credentials by origin, such as `https://registry.example.com:5000`. */
  readonly entries: Readonly<Record<string, RegistryCredentials>>
  /** Path of a file in the format of `~/.docker/config.json`. Read for each transfer that needs credentials. */
  readonly file?: string | undefined
}

/** Returns the credentials of an origin. Throws an `LlmError` `internal` if the file is invalid. */
export async function findCredentials(
  { entries, file }: CredentialSources,
  origin: string,
): Promise<RegistryCredentials | undefined> {
  if (Object.hasOwn(entries, origin)) return entries[origin]
  return file === undefined ? undefined : (await readCredentialsFile(file)).get(origin)
}

const FileSchema = z.object({
  auths: z
    .record(
      z.string(),
      z.object({
        /** Base64 of `username:password`. */
        auth: z.string().optional(),
        username: z.string().optional(),
        password: z.string().optional(),
        registrytoken: z.string().optional(),
        /** An addition to the format. */
        realm: z.string().optional(),
      }),
    )
    .default({}),
})
type AuthEntry = z.output<typeof FileSchema>['auths'][string]

/**
 * Reads credentials by origin. A missing file has none. Entries without credentials are ignored, since programs such
 * as Docker keep them elsewhere.
 */
async function readCredentialsFile(file: string): Promise<ReadonlyMap<string, RegistryCredentials>> {
  const text = await readFile(file, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return '{}'
    throw fileInvalid(file, cause)
  })
  const { auths } = parseFile(text, file)
  return new Map(
    Object.entries(auths).flatMap(([host, entry]) => {
      const origin = toOrigin(host)
      const credentials = toCredentials(entry)
      return origin && credentials ? [[origin, credentials] as const] : []
    }),
  )
}

function parseFile(text: string, file: string): z.output<typeof FileSchema> {
  try {
    return FileSchema.parse(JSON.parse(text))
  } catch {
    // The cause may quote the file.
    throw fileInvalid(file)
  }
}

/** The origin of a host, which is `https` unless the text says otherwise. */
function toOrigin(host: string): string | undefined {
  const text = host.includes('://') ? host : `https://${host}`
  return URL.canParse(text) ? new URL(text).origin : undefined
}

function toCredentials({
  auth = '',
  registrytoken,
  realm,
  ...entry
}: AuthEntry): RegistryCredentials | undefined {
  if (registrytoken && isToken(registrytoken)) return { token: registrytoken }
  const [decodedName, ...rest] = Buffer.from(auth, 'base64').toString().split(':')
  const { username = decodedName, password = rest.join(':') } = entry
  if (!username || !password) return undefined
  return { username, password, ...(realm && { realm: toOrigin(realm) }) }
}

/** Whether the text can be in a header. */
export const isToken = (text: string): boolean => /^[\x21-\x7e]+$/.test(text)

export const basicAuthorization = (username: string, password: string): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

const fileInvalid = (file: string, cause?: unknown): LlmError =>
  new LlmError(
    'internal',
    `${file}: expected credentials for registries, such as { "auths": { "registry.example.com": { "auth": "…" } } }.`,
    { setup: true },
    { cause },
  )
