/** Nesting deeper than any value needs. The model reaches it when a recursive schema lets it nest on. */
const deep = 12
/** Longer than any string that the schemas limit, in characters. */
const long = 100

/** Describes what the model was writing when the token limit cut off its JSON. */
export function whereItBrokeOff(answer: string): string {
  const open: string[] = []
  let inside: { readonly isName: boolean; text: string } | undefined
  let before = ''
  for (const [part] of answer.matchAll(/\\.?|[^\\]/gs)) {
    if (inside && part !== '"') inside.text += part
    else if (part === '"')
      inside = inside ? undefined : { isName: open.at(-1) === '{' && before !== ':', text: '' }
    else if (part === '{' || part === '[') open.push(part)
    else if (part === '}' || part === ']') open.pop()
    if (part !== ' ') before = part
  }
  if (open.length > deep) return 'nested values'
  if (!inside || inside.text.length < long) return repeats(answer) ? 'repeated parts' : 'many parts'
  return `a ${repeats(inside.text) ? 'repetitive' : 'long'} ${inside.isName ? 'property name' : 'string'}`
}

/** Whether the end of the text contains the same 1 to 60 characters four times in a row. */
const repeats = (text: string): boolean => /(.{1,60}?)\1{3}.{0,60}$/s.test(text.slice(-400))

/** Formats counts as `3 in many parts, 1 in nested values`, the most frequent cause first. */
export function countsOf(causes: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const cause of causes) counts.set(cause, (counts.get(cause) ?? 0) + 1)
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([cause, count]) => `${count} in ${cause}`)
    .join(', ')
}
