/** Names of models. The tag `latest` may be missing. */

export const isSameModel = (one: string, other: string): boolean =>
  withoutLatest(one) === withoutLatest(other)

/** @param models names of the models of a key, and patterns in which `*` stands for any characters. Empty for all models */
export const includesModel = (models: readonly string[], name: string): boolean =>
  models.length === 0 || models.some((model) => isSameModel(model, name) || toPattern(model).test(name))

const withoutLatest = (name: string): string => name.replace(/:latest$/, '')

const toPattern = (text: string): RegExp =>
  new RegExp(
    `^${text
      .split(/\*+/)
      .map((part) => part.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
      .join('.*')}(:latest)?$`,
  )
