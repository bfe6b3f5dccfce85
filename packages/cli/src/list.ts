/** Splits a list at commas. Empty items are left out. */
export const splitList = <Item extends string>(text: string): readonly Item[] =>
  text
    .split(',')
    .map((one) => one.trim() as Item)
    .filter(Boolean)
