/** Deeper than any value needs: the schema holds itself, and the model goes on. */
const deep = 12
/** Longer than any text of which the schema says something. */
const long = 100

/** Where an answer in JSON was when the limit broke it off. */
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
  if (open.length > deep) return 'values in values'
  if (!inside || inside.text.length < long)
    return repeats(answer) ? 'parts that repeat themselves' : 'many parts'
  return `a ${inside.isName ? 'name' : 'text'} that ${repeats(inside.text) ? 'repeats itself' : 'goes on'}`
}

/** Whether its end says the same four times in a row. */
const repeats = (text: string): boolean => /(.{1,60}?)\1{3}.{0,60}$/s.test(text.slice(-400))

/** `3 of this, 1 of that`, the most frequent first. */
export function countsOf(causes: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const cause of causes) counts.set(cause, (counts.get(cause) ?? 0) + 1)
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([cause, count]) => `${count} in ${cause}`)
    .join(', ')
}
