/**
 * Thoughts for clients that hand them back unread (`reasoning.encrypted_content`). This server keeps nothing, so all of them is in
 * the seal; and they are no secret, so it hides nothing.
 */
const mark = 'sealed1.'

export const sealed = (text: string): string => mark + Buffer.from(text).toString('base64url')

/** Empty for the seals of other servers. */
export const unsealed = (seal: string): string =>
  seal.startsWith(mark) ? Buffer.from(seal.slice(mark.length), 'base64url').toString() : ''
