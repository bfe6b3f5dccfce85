/** Text that spells a token with a meaning of its own becomes that token; broken up, it stays text. */

/** Nobody sees it, and no tokenizer joins over it. */
const zeroWidthSpace = '\u200B'

/** @param tokens as they are spelled, such as `<|im_end|>` */
export function createNeutralizer(tokens: readonly string[]): (text: string) => string {
  const breakable = tokens.filter((token) => token.length > 1).sort((a, b) => b.length - a.length)
  if (breakable.length === 0) return (text) => text
  const tokenPattern = new RegExp(
    breakable.map((token) => token.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'),
    'g',
  )
  return (text) => text.replace(tokenPattern, (token) => token[0] + zeroWidthSpace + token.slice(1))
}
