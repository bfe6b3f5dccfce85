/** An error in a template or its execution, in Go's wording where Go has the same error. */
export class GoTemplateError extends Error {
  override readonly name = 'GoTemplateError'
}

/** @param at offset in the source */
export const errorAt = (source: string, at: number, what: string): GoTemplateError =>
  new GoTemplateError(`template: :${lineAt(source, at)}: ${what}`)

const lineAt = (source: string, at: number): number => source.slice(0, at).split('\n').length
