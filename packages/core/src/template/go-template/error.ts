/** What is wrong with a template, or with what it is filled with. The words are Go's where it has some. */
export class GoTemplateError extends Error {
  override readonly name = 'GoTemplateError'
}

/** @param at where in the source */
export const errorAt = (source: string, at: number, what: string): GoTemplateError =>
  new GoTemplateError(`template: :${lineAt(source, at)}: ${what}`)

const lineAt = (source: string, at: number): number => source.slice(0, at).split('\n').length
