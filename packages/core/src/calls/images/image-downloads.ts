/** Downloads images from the hosts that the app allows. */
import type { ImagePart } from '../../engine/request.ts'
import { limits } from '../../engine/request-limits.ts'
import { LlmError } from '../../errors.ts'
import { withDeadline } from '../../models/registry/deadline.ts'
import { discard, type GuardedFetch, readLimitedBody } from '../../models/registry/guarded-fetch.ts'
import { checkImage, invalidImage, isRemote, sizeOf } from './check-image.ts'
import type { FoundImage } from './map-images.ts'

/** Time limit for all downloads of a request, in ms. */
const defaultTimeoutMs = 30_000

export interface ImageDownloadOptions {
  /** As `host` or `host:port`. */
  readonly hosts: readonly string[]
  readonly guard: GuardedFetch
  readonly timeoutMs?: number
}

export class ImageDownloads {
  /** As `host:port`. */
  readonly #hosts: readonly string[]
  readonly #guard: GuardedFetch
  readonly #timeoutMs: number
  /** Downloaded images, so that a fallback of the model and the next step of a chat do not download them again. */
  readonly #downloaded = new WeakMap<ImagePart, ImagePart>()

  constructor({ hosts, guard, timeoutMs = defaultTimeoutMs }: ImageDownloadOptions) {
    this.#hosts = hosts.map((host) => (/:\d+$/.test(host) ? host : `${host}:443`))
    this.#guard = guard
    this.#timeoutMs = timeoutMs
  }

  /** Throws an `LlmError` `invalid_request` for a URL of another host. */
  expectAllowed({ image: { url = '' }, param }: FoundImage): void {
    if (this.#hosts.length > 0 && URL.canParse(url)) {
      const { protocol, hostname, port, username, password } = new URL(url)
      const isAllowed = this.#hosts.includes(`${hostname}:${port || '443'}`)
      if (protocol === 'https:' && username === '' && password === '' && isAllowed) return
    }
    throw invalidImage(
      "expected a data: URL in Base64, such as 'data:image/png;base64,…'. Images of this host are not downloaded",
      param,
    )
  }

  /**
   * Downloads the images that have a URL, one after the other. Returns each by the image that it replaces. Rejects with an
   * `LlmError` `invalid_request`, or with the reason of the signal.
   */
  async download(
    images: readonly FoundImage[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<ImagePart, ImagePart>> {
    const downloaded = new Map<ImagePart, ImagePart>()
    const timeout = new LlmError('invalid_request', 'The images could not be downloaded in time.')
    await withDeadline(
      async (limited) => {
        let room = limits.allImageBytes - sumSizes(images.map(({ image }) => image))
        for (const found of images) {
          if (!isRemote(found.image) || downloaded.has(found.image)) continue
          const image = this.#downloaded.get(found.image) ?? (await this.#fetch(found, room, limited))
          room -= sizeOf(image.data)
          this.#downloaded.set(found.image, image)
          downloaded.set(found.image, image)
        }
      },
      this.#timeoutMs,
      timeout,
      signal,
    )
    return downloaded
  }

  close(): Promise<void> {
    return this.#guard.close()
  }

  /** Callers learn nothing of what the host has answered. */
  async #fetch(
    { image, param, isInResult }: FoundImage,
    room: number,
    signal: AbortSignal,
  ): Promise<ImagePart> {
    const { url, ...part } = image
    try {
      const response = await this.#guard.fetch(new URL(url ?? ''), {
        signal,
        redirectHosts: this.#hosts,
        // Plain HTTP is for private hosts, and the app allows none.
        insecure: true,
      })
      const mediaType = response.header('content-type')?.split(';')[0] ?? ''
      if (response.status !== 200 || !mediaType.toLowerCase().startsWith('image/')) {
        await discard(response)
        throw new Error(`The host of an image answered with status ${response.status}, type ${mediaType}`)
      }
      const bytes = await readLimitedBody(response, Math.min(limits.imageBytes, Math.max(0, room)))
      return checkImage({ image: { ...part, mediaType, data: bytes.toString('base64') }, param, isInResult })
    } catch (cause) {
      if (signal.aborted) throw cause
      throw invalidImage(
        `it could not be downloaded. Expected an image of at most ${limits.imageBytes} bytes`,
        param,
        cause,
      )
    }
  }
}

export const sumSizes = (images: readonly ImagePart[]): number =>
  images.reduce((sum, { data, url }) => sum + sizeOf(data || (url ?? '')), 0)
