/** Checks the fields of a create request. Uses the error texts of Ollama's `server/create.go`. */
import { invalidRequest } from '../../errors.ts'
import { GoTemplateError, parseGoTemplate } from '../../template/go-template/index.ts'
import { parseExactName, parseModelName } from '../ollama-store/name.ts'
import { withoutDigest } from '../pinned-name.ts'
import type { CreateModelRequest } from './create-request.ts'
import { findParameterProblems } from './parameters.ts'

const textFields = ['model_family', 'base_name', 'quantization_level', 'parameter_size']
const countFields = ['context_length', 'embedding_length']

/** Throws `invalid_request` with the first problem. */
export function checkCreate(spec: CreateModelRequest): void {
  const [problem] = findProblems(spec)
  if (problem !== undefined) throw invalidRequest(problem)
}

function* findProblems(spec: CreateModelRequest): Generator<string> {
  const { name, from, files, adapters = {}, quantize, info = {}, template = '', parameters = {} } = spec
  if (!parseExactName(name)) yield 'invalid model name'
  for (const [path, digest] of Object.entries({ ...files, ...adapters })) {
    if (!isRelative(path)) yield 'file path must be relative'
    if (digest === '') yield 'invalid digest format'
  }
  if (!from && !files) yield "neither 'from' or 'files' was specified"
  if (from && !parseModelName(withoutDigest(from))) yield 'invalid model name'
  if (!from && Object.keys(files ?? {}).length === 0) yield 'no files provided to convert'
  if (Object.keys(adapters).length > 1) yield 'only one adapter is currently supported'
  if (quantize) yield 'quantization is not offered here: upload a file that is quantized already'
  yield* findInfoProblems(info)
  yield* findParameterProblems(parameters)
  yield* findTemplateProblems(template)
}

function* findTemplateProblems(template: string): Generator<string> {
  try {
    parseGoTemplate(template)
  } catch (error) {
    if (!(error instanceof GoTemplateError)) throw error
    yield `template error: ${error.message}`
  }
}

function* findInfoProblems(info: Readonly<Record<string, unknown>>): Generator<string> {
  const capabilities = info.capabilities ?? []
  if (!Array.isArray(capabilities) || capabilities.some((one) => typeof one !== 'string'))
    yield 'info field "capabilities" must be an array of strings'
  for (const field of textFields)
    if (typeof (info[field] ?? '') !== 'string') yield `info field "${field}" must be a string`
  for (const field of countFields) {
    const value = info[field] ?? 0
    if (typeof value !== 'number') yield `info field "${field}" must be a number`
    else if (!Number.isSafeInteger(value) || value < 0)
      yield `info field "${field}" must be a non-negative integer`
  }
}

/** Follows Go's `fs.ValidPath`. */
const isRelative = (path: string): boolean => path.split('/').every((part) => !['', '.', '..'].includes(part))
