/**
 * Thoughts for clients that hand them back unread (`reasoning.encrypted_content`). This server keeps nothing, so all of them is in
 * the seal; and they are no secret, so it hides nothing.
 */
const prefix = 'sealed1.'

export const encodeReasoning = (text: string): string => prefix + Buffer.from(text).toString('base64url')

/** Empty for the seals of other servers. */
export const decodeReasoning = (encoded: string): string =>
  encoded.startsWith(prefix) ? Buffer.from(encoded.slice(prefix.length), 'base64url').toString() : ''
