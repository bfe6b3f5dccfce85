/**
 * Encodes reasoning for clients that send it back unread (`reasoning.encrypted_content`). The server stores no responses, so
 * the text contains all of the reasoning. It is encoded and not encrypted, since the client may read it.
 */
const prefix = 'sealed1.'

export const encodeReasoning = (text: string): string => prefix + Buffer.from(text).toString('base64url')

/** Returns an empty text for the encrypted content of other servers. */
export const decodeReasoning = (encoded: string): string =>
  encoded.startsWith(prefix) ? Buffer.from(encoded.slice(prefix.length), 'base64url').toString() : ''
