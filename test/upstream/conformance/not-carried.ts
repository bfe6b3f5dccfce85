/** Rows of the conformance table that fail with an upstream engine, by what the API of the server lacks. */
import type { RequirementId } from '../../conformance/requirements.ts'

export const reasons = {
  errorTexts: 'Texts and field names of the errors of the server are not passed on',
  lackedFields: 'A field or value that the API lacks is a 400',
  lackedRoutes: 'The API has no embeddings, reranking, raw prompts or fill-in-the-middle',
  breakpoints: 'Cache breakpoints and their counts do not match those of the server',
  modelFiles: 'The server does not tell the files, templates, sizes, families and fingerprints of models',
  unknownModels: 'A model that the server does not list is a 404',
  loading: 'The server loads and unloads its models by itself, and decides about their context',
  truncation: 'Prompts and texts that are too long are not truncated',
  tokenIds: 'Token ids are neither taken beside texts nor returned',
  tokenizer: 'The server has no tokenizer and no rendered prompts for the app',
  estimates: 'Tokens are estimated before the answer, or counted only at its end',
  noOutput: 'There is no answer without output, and no log probabilities of the prompt',
  logprobs: 'Log probabilities are those of visible text, without token ids and bytes',
  reasoning: 'Reasoning is not taken back, or not returned unless it is requested',
  endings: 'How an answer or a tool call ended is reported less precisely',
  toolCalls: 'A tool call arrives in one piece',
  timings: 'Progress and times of load and evaluation are those that the app knows',
  otherWords: 'The request reaches the model in other fields or messages of the same meaning',
  precision: 'Vectors have 32 bits per number, as those of models have',
  buffers: 'An answer is generated before its reader leaves, since two apps buffer it',
} as const
export type Reason = keyof typeof reasons

/** Ids of requirements, and titles of other checks. */
export type NotCarried = Readonly<Partial<Record<Reason, readonly (RequirementId | (string & {}))[]>>>

/** The reason of each row. Throws if a row has two. */
export function reasonsByRow(notCarried: NotCarried): Readonly<Record<string, string>> {
  const rows = Object.entries(notCarried).flatMap(([reason, keys]) =>
    keys.map((key) => [key, reasons[reason as Reason]] as const),
  )
  const byRow = Object.fromEntries(rows)
  if (Object.keys(byRow).length < rows.length) throw new Error('A row has two reasons.')
  return byRow
}

/** Returns the rows of both lists. */
export const extend = (common: NotCarried, own: NotCarried): NotCarried =>
  Object.fromEntries(
    (Object.keys(reasons) as Reason[]).map((reason) => [
      reason,
      [...(common[reason] ?? []), ...(own[reason] ?? [])],
    ]),
  )
