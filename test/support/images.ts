/** Small images in Base64. */
export const images = {
  /** 2 × 2 pixels. */
  png: 'iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEUlEQVR42mP4z8AARAxg8j8AG/ID/Y4I1K8AAAAASUVORK5CYII=',
  gif: 'R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7',
  webp: 'UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA',
  /** The beginning and the end of a file, without pixels. */
  jpeg: '/9j/4AAQSkZJRgABAQAAAQABAAD/2Q==',
} as const

export const pngUrl = `data:image/png;base64,${images.png}`
