/**
 * Checks a GGUF file before llama.cpp loads it. Impossible numbers would fail an assertion in llama.cpp and
 * end the model process. Problems that llama.cpp reports as errors are not checked here.
 */
import { basename } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { Model } from '../model.ts'
import { findAdapterProblems } from './adapter-check.ts'
import { describeFile, type Gguf, readGguf, unusableFile } from './gguf.ts'

/** Equal to `LLAMA_MAX_LAYERS` and `LLAMA_MAX_EXPERTS` of llama.cpp. */
const limits = { layers: 512, experts: 1_024 }
const maxContext = 2 ** 31 - 1
/** Limit of the head count and of the head length. Their product must fit in 32 bits. */
const maxHeads = 2 ** 16 - 1
/** Tensor types that llama.cpp cannot multiply. */
const storageOnlyTypes: readonly string[] = ['I8', 'I16', 'I64', 'F64', 'Q8_1', 'Q8_K']
const ropeScalings: readonly unknown[] = ['none', 'linear', 'yarn', 'longrope']
const tokenizersWithoutVocabulary: readonly unknown[] = ['no_vocab', 'none']

/** Number of tokens to check before yielding to the event loop. */
const tokensPerTick = 2_000

const vocabularyKey = 'tokenizer.ggml.tokens'

interface CheckedModel extends Pick<Model, 'name' | 'path'> {
  readonly adapters?: readonly { readonly path: string }[]
}

/**
 * Throws an `LlmError` `upstream` if a file of the model is damaged or would crash llama.cpp. The message
 * contains the reason.
 */
export async function checkModel({ name, path, adapters = [] }: CheckedModel): Promise<void> {
  const label = describeFile(name)
  const file = await readGguf(path, { label, arrays: isCheckedKey })
  const [problem] = findProblems(file)
  const reason = problem ?? (await findVocabularyProblem(file.metadata))
  if (reason) throw unusableFile(label, reason)
  for (const adapter of adapters) await checkAdapter(adapter.path, name, file)
}

async function checkAdapter(path: string, model: string, base: Gguf): Promise<void> {
  const label = `adapter ${basename(path)} of the model "${model}"`
  for await (const problem of findAdapterProblems(await readGguf(path, { label }), base))
    throw unusableFile(label, problem)
}

/** Excludes metadata that is not checked, such as the scores and merges of tokens, which take megabytes. */
const isCheckedKey = (key: string): boolean => key === vocabularyKey || !key.startsWith('tokenizer.')

/** Ignores absent keys. Some keys are optional, and llama.cpp reports an error for the others. */
function* findProblems({ metadata, tensors, isComplete }: Gguf): Generator<string> {
  /** The metadata contains one number for all layers, or a list with one number per layer. */
  const numbers = (key: string): readonly number[] => {
    const value = metadata[`${metadata['general.architecture']}.${key}`]
    return (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'number')
  }
  const largest = (key: string): number => largestOf(numbers(key))
  const isZero = (key: string): boolean => numbers(key).length > 0 && largest(key) === 0
  const has = (tensor: RegExp): boolean => tensors.some(({ name }) => tensor.test(name))

  if (metadata['general.type'] === 'adapter') yield 'it is an adapter, not a model'
  if (!isComplete) yield 'it was cut off, and weights are missing'

  const badTensor = tensors.find(
    ({ name, type, shape }) =>
      name.endsWith('.weight') && shape.length > 1 && storageOnlyTypes.includes(type),
  )
  if (badTensor) yield `its weights cannot be of type ${badTensor.type}`

  const layers = largest('block_count')
  if (isZero('block_count') || layers > limits.layers) yield `it cannot have ${layers} layers`
  if (largest('nextn_predict_layers') > layers) yield 'it predicts with more layers than it has'
  if (largest('context_length') > maxContext) yield 'its context cannot be that long'

  // 0 is valid for a model without attention, and for single layers without attention.
  if (has(/\.attn_(q|qkv)\.weight$/)) {
    for (const key of ['head_count', 'key_length', 'value_length'])
      if (isZero(`attention.${key}`)) yield `it has attention with a ${key} of 0`
  }
  if (has(/\.attn_k\.weight$/) && isZero('attention.head_count_kv'))
    yield 'it has attention with a head_count_kv of 0'
  for (const key of ['head_count', 'head_count_kv', 'key_length', 'value_length'])
    if (largest(`attention.${key}`) > maxHeads) yield `its ${key} is too large`
  if (has(/\.ffn_(up|down)\.weight$/) && isZero('feed_forward_length'))
    yield 'it has feed-forward layers with a feed_forward_length of 0'

  if (metadata['general.architecture'] === 'llama') yield* findHeadLengthProblems(numbers)
  yield* findExpertProblems(numbers)

  const scaling = metadata[`${metadata['general.architecture']}.rope.scaling.type`]
  if (scaling !== undefined && !ropeScalings.includes(scaling)) yield 'its rope scaling is unknown'
  for (const [key, value] of Object.entries(metadata))
    if (key.endsWith('epsilon') && typeof value === 'number' && !(value >= 0)) yield `its ${key} is ${value}`
}

/** llama.cpp's `src/models/llama.cpp` ends the process unless keys and values have the same length. */
function* findHeadLengthProblems(numbers: (key: string) => readonly number[]): Generator<string> {
  const heads = largestOf(numbers('attention.head_count'))
  const defaultLength = heads > 0 ? Math.floor(largestOf(numbers('embedding_length')) / heads) : undefined
  const [keys, values] = ['key_length', 'value_length'].map(
    (key) => numbers(`attention.${key}`)[0] ?? defaultLength,
  )
  if (keys !== undefined && values !== undefined && keys !== values)
    yield `its keys and values have different lengths, ${keys} and ${values}`
}

function* findExpertProblems(numbers: (key: string) => readonly number[]): Generator<string> {
  const largest = (key: string): number => largestOf(numbers(key))
  const experts = largest('expert_count')
  const used = largest('expert_used_count')
  const groups = largest('expert_group_count')
  const groupsUsed = largest('expert_group_used_count')
  if (experts > limits.experts) yield `it cannot have ${experts} experts`
  if (used > experts || (experts > 0 && used === 0)) yield `it cannot use ${used} of ${experts} experts`
  if (groups > 0 && groups >= experts) yield `it cannot have ${groups} groups of ${experts} experts`
  if (groups > 1 && (experts % groups !== 0 || groupsUsed === 0 || groupsUsed >= groups))
    yield `it cannot use ${groupsUsed} of ${groups} groups of ${experts} experts`
}

const largestOf = (numbers: readonly number[]): number =>
  numbers.reduce((largest, one) => Math.max(largest, one), 0)

/** Yields to the event loop regularly, since a vocabulary can have hundreds of thousands of tokens. */
async function findVocabularyProblem(metadata: Gguf['metadata']): Promise<string | undefined> {
  const tokenizer = metadata['tokenizer.ggml.model']
  const tokens = metadata[vocabularyKey]
  if (tokenizersWithoutVocabulary.includes(tokenizer)) return 'it has no vocabulary'
  if (!Array.isArray(tokens)) return undefined
  if (tokens.length === 0) return 'its vocabulary is empty'
  const seen = new Set<unknown>()
  for (const [id, token] of tokens.entries()) {
    // llama.cpp replaces an empty token by this text.
    const word = token === '' ? `[EMPTY_${id}]` : token
    // All invalid UTF-8 decodes to U+FFFD, so tokens that contain U+FFFD cannot be compared.
    if (seen.has(word) && !String(word).includes('\uFFFD')) return 'its vocabulary has a token twice'
    seen.add(word)
    if (id % tokensPerTick === 0) await setImmediate()
  }
  return isVocabularyConsistent(seen, tokenizer) ? undefined : 'its vocabulary does not fit its tokenizer'
}

/**
 * Checks that the vocabulary fits the kind of tokenizer. If needed tokens are missing, the tokenizer of
 * llama.cpp crashes or loops.
 */
function isVocabularyConsistent(vocabulary: ReadonlySet<unknown>, tokenizer: unknown): boolean {
  const hasBytes = vocabulary.has('<0xE2>')
  // SentencePiece writes spaces as U+2581, and falls back to byte tokens.
  if (tokenizer === 'llama') return hasBytes || vocabulary.has('\u2581')
  if (tokenizer === 'bert') return !hasBytes
  if (tokenizer === 'rwkv') return vocabulary.has('\\x00')
  return true
}
