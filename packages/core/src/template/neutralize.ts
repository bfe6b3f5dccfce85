/** Prevents special tokens in untrusted text from being tokenized as special tokens. */
/** Invisible character. No tokenizer merges the text before and after it. */
const zeroWidthSpace = '\u200B'

/** @param tokens texts of special tokens, such as `<|im_end|>` */
export function createNeutralizer(tokens: readonly string[]): (text: string) => string {
  const breakable = tokens.filter((token) => token.length > 1).sort((a, b) => b.length - a.length)
  if (breakable.length === 0) return (text) => text
  const tokenPattern = new RegExp(
    breakable.map((token) => token.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'),
    'g',
  )
  return (text) => text.replace(tokenPattern, (token) => token[0] + zeroWidthSpace + token.slice(1))
}
