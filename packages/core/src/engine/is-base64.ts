/**
 * Whether a text is Base64 with padding and without line breaks. Searches for a wrong character, because a pattern for the whole
 * text needs too much stack for megabytes.
 */
export function isBase64(text: string): boolean {
  const end = text.search(/[^A-Za-z0-9+/]/)
  return text.length % 4 === 0 && (end === -1 || /^={1,2}$/.test(text.slice(end, end + 3)))
}
