/** Prepares the images of requests: checks, replaces or downloads them, as the model of the call needs it. */
import type { Engine } from '../../engine/engine.ts'
import type { GenerateRequest } from '../../engine/request.ts'
import { imagesOf } from '../../engine/request-input.ts'
import { limits } from '../../engine/request-limits.ts'
import { type Call, isGenerateRequest, type ModelRequest } from '../call.ts'
import { checkImage, invalidImage, isRemote } from '../images/check-image.ts'
import { type ImageDownloads, sumSizes } from '../images/image-downloads.ts'
import { type FoundImage, mapImages, type PromptInput } from '../images/map-images.ts'
import { replaceImages } from '../images/replace-images.ts'
import type { CallStep } from '../step.ts'

/** Follows the interceptors, which may change images and the model. */
export const createImageCheckStep = (engine: Engine, downloads: ImageDownloads): CallStep => ({
  name: 'image-check',
  before(call) {
    const check = (input: PromptInput): PromptInput => {
      checkTotal(input)
      return mapImages(input, (found) => {
        if (!isRemote(found.image)) return checkImage(found)
        downloads.expectAllowed(found)
        return found.image
      })
    }
    call.requests = mapInputs(call, (request) => {
      const seesImages = engine.seesImages?.(request, call.toEngineCall()) ?? false
      return seesImages ? check(request.input) : replaceImages(request.input)
    })
  },
})

/**
 * Follows the limits and the queue, so that a caller without requests left causes no downloads, and only calls with a permit hold
 * downloaded images. An image counts the same with and without its bytes.
 */
export const createImageDownloadStep = (downloads: ImageDownloads): CallStep => ({
  name: 'image-download',
  mayWait: true,
  async before(call) {
    const found = findRemote(call)
    if (found.length === 0) return
    const downloaded = await downloads.download(found, call.signal)
    call.requests = mapInputs(call, ({ input }) =>
      mapImages(input, ({ image }) => downloaded.get(image) ?? image),
    )
  },
})

/** Maps the inputs that have images. Requests that share an input share the result. */
function mapInputs(
  { requests }: Call,
  map: (request: GenerateRequest) => PromptInput,
): readonly ModelRequest[] {
  const mapped = new Map<PromptInput, PromptInput>()
  return requests.map((request) => {
    if (!isGenerateRequest(request) || imagesOf(request.input).length === 0) return request
    const input = mapped.get(request.input) ?? map(request)
    mapped.set(request.input, input)
    return { ...request, input }
  })
}

function findRemote({ requests }: Call): readonly FoundImage[] {
  const found: FoundImage[] = []
  for (const input of new Set(requests.filter(isGenerateRequest).map((request) => request.input))) {
    const images: FoundImage[] = []
    mapImages(input, (one) => {
      images.push(one)
      return one.image
    })
    if (images.some(({ image }) => isRemote(image))) found.push(...images)
  }
  return found
}

function checkTotal(input: PromptInput): void {
  const images = imagesOf(input)
  const param = (at: number): string => images[at]?.param ?? 'input'
  if (images.length > limits.images)
    throw invalidImage(`expected at most ${limits.images} images, got ${images.length}`, param(limits.images))
  const bytes = sumSizes(images)
  if (bytes > limits.allImageBytes)
    throw invalidImage(
      `expected images of at most ${limits.allImageBytes} bytes together, got ${bytes}`,
      param(images.length - 1),
    )
}
