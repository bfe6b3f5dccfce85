/** Pops every item of a stack, including those pushed during the iteration. */
export function* drain<T>(stack: T[]): Generator<T> {
  while (stack.length > 0) yield stack.pop() as T
}
