/** Addresses of the pages of a model. Names contain slashes, so they are in the query. */
export const linkTo = (model: string): string => `/models/show?model=${encodeURIComponent(model)}`
export const linkToCreate = (from: string): string => `/models/new?from=${encodeURIComponent(from)}`
/** The code of a first request. */
export const linkToCode = (model: string): string => `${linkToChat(model)}&code=1`
export const linkToChat = (model: string): string => `/playground?model=${encodeURIComponent(model)}`
