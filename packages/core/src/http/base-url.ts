/** The URL of the mount point, as clients call it. Responses with absolute URLs contain it. */

interface CalledUrl {
  readonly protocol: string
  readonly host: string | undefined
  /** Path of the request as the client sent it. */
  readonly originalPath: string
  /** Path below the mount point. */
  readonly path: string
}

/** Returns undefined if the host is missing or invalid, since a client can send any text as its host. */
export function toBaseUrl({ protocol, host, originalPath, path }: CalledUrl): string | undefined {
  const prefix = originalPath.endsWith(path) ? originalPath.slice(0, -path.length) : ''
  // A user name, a path or a query in the header would become a part of the URL.
  if (host === undefined || !hostPattern.test(host)) return undefined
  const url = `${protocol}://${host}`
  return URL.canParse(url) ? `${new URL(url).origin}${prefix}` : undefined
}

/** A name, an IPv4 address or an IPv6 address in brackets, and a port. */
const hostPattern = /^([\w.-]+|\[[\da-f:.]+\])(:\d+)?$/i

/** Removes a slash at the end. Throws a `TypeError` for anything but a URL of HTTP or HTTPS. */
export function checkPublicUrl(publicUrl: string | undefined): string | undefined {
  if (publicUrl === undefined) return undefined
  const isHttp = URL.canParse(publicUrl) && /^https?:$/.test(new URL(publicUrl).protocol)
  if (!isHttp || /[?#]/.test(publicUrl))
    throw new TypeError(
      `Expected \`publicUrl\` to be a URL such as 'https://api.example.com/llm', got '${publicUrl}'`,
    )
  return publicUrl.replace(/\/+$/, '')
}
