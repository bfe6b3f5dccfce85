/**
 * Encodes reasoning as `reasoning.encrypted_content`, which clients send back unread. This server stores no
 * responses, so the encoded text contains the whole reasoning. It is not encrypted, since the client may read
 * it.
 */
const prefix = 'sealed1.'

export const encodeReasoning = (text: string): string => prefix + Buffer.from(text).toString('base64url')

/** Returns an empty text for the encrypted content of other servers. */
export const decodeReasoning = (encoded: string): string =>
  encoded.startsWith(prefix) ? Buffer.from(encoded.slice(prefix.length), 'base64url').toString() : ''
