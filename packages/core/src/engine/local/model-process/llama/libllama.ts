/**
 * FFI to the libllama that node-llama-cpp has loaded. Evaluates many texts in one decode, which the addon of
 * node-llama-cpp cannot: it returns the pooled vector of the first sequence only.
 */
import { promisify } from 'node:util'
import type { Llama, Token } from 'node-llama-cpp'
import { LlmError } from '../../../../errors.ts'
import { readProcessReport } from '../../../../util/process-report.ts'

type Koffi = typeof import('koffi').default
type Pointer = unknown
type Text = readonly Token[]

/** Version of llama.cpp that the structs in this file belong to. */
const supportedRelease = 'v0.5.0'
const libraryFile = /[/\\](lib)?llama(\.v[\d.]+)?\.(so|dylib|dll)$/
const rankPooling = 4

export interface WeightsOptions {
  readonly modelPath: string
  readonly gpuLayers: number
  /** Called with the loaded part of the weights, from 0 to 1. */
  readonly onProgress: (fraction: number) => void
}

export interface PoolingContextOptions {
  /** Maximum number of tokens in one decode. */
  readonly tokens: number
  /** Maximum number of texts in one decode. */
  readonly texts: number
  readonly flashAttention: boolean | 'auto'
}

/** Returns the pooled vector of each text. A rank is a vector of logits. */
export type DecodeTexts = (texts: readonly Text[]) => Promise<readonly Float32Array[]>

export interface PoolingWeights {
  /** Whether texts of several sequences may share a decode. */
  readonly canBatch: boolean
  /** Opens a context that runs one thread. Throws if there is too little memory. */
  openContext(options: PoolingContextOptions): Promise<DecodeTexts>
}

export interface Libllama {
  /** Throws if the file cannot be loaded. */
  loadWeights(options: WeightsOptions): Promise<PoolingWeights>
}

/** Returns `undefined` if koffi is not installed, or if the library is not the one that this file knows. */
export async function openLibllama(llama: Llama): Promise<Libllama | undefined> {
  const { release, repo } = llama.llamaCppRelease
  const path = findLoadedLibrary()
  if (release !== supportedRelease || repo !== 'ggml-org/llama.cpp' || path === undefined) return undefined
  try {
    const { default: koffi } = await import('koffi')
    const native = bind(koffi, path)
    return hasExpectedDefaults(native)
      ? { loadWeights: (options) => loadWeights(koffi, native, options) }
      : undefined
  } catch {
    return undefined
  }
}

/** Opens the same file again, so that the system returns the loaded library with its state. */
const findLoadedLibrary = (): string | undefined =>
  readProcessReport().sharedObjects?.find((file) => libraryFile.test(file))

type Native = ReturnType<typeof bind>

/** Throws if a symbol is missing. The structs follow `llama.h`. */
function bind(koffi: Koffi, path: string) {
  const library = koffi.load(path)
  const pointer = 'void *'
  const modelParams = koffi.struct({
    devices: pointer,
    tensor_buft_overrides: pointer,
    n_gpu_layers: 'int32',
    split_mode: 'int',
    load_mode: 'int',
    lazy_mode: 'int',
    main_gpu: 'int32',
    tensor_split: pointer,
    progress_callback: pointer,
    progress_callback_user_data: pointer,
    kv_overrides: pointer,
    vocab_only: 'bool',
    check_tensors: 'bool',
    use_extra_bufts: 'bool',
    no_host: 'bool',
    no_alloc: 'bool',
    load_mtp: 'bool',
  })
  const contextParams = koffi.struct({
    n_ctx: 'uint32',
    n_batch: 'uint32',
    n_ubatch: 'uint32',
    n_seq_max: 'uint32',
    n_rs_seq: 'uint32',
    n_outputs_max: 'uint32',
    n_outputs_max_per_seq: 'uint32',
    n_threads: 'int32',
    n_threads_batch: 'int32',
    ctx_type: 'int',
    rope_scaling_type: 'int',
    pooling_type: 'int',
    attention_type: 'int',
    flash_attn_type: 'int',
    rope_freq_base: 'float',
    rope_freq_scale: 'float',
    yarn_ext_factor: 'float',
    yarn_attn_factor: 'float',
    yarn_beta_fast: 'float',
    yarn_beta_slow: 'float',
    yarn_orig_ctx: 'uint32',
    defrag_thold: 'float',
    cb_eval: pointer,
    cb_eval_user_data: pointer,
    type_k: 'int',
    type_v: 'int',
    abort_callback: pointer,
    abort_callback_data: pointer,
    embeddings: 'bool',
    offload_kqv: 'bool',
    no_perf: 'bool',
    op_offload: 'bool',
    swa_full: 'bool',
    kv_unified: 'bool',
    samplers: pointer,
    n_samplers: 'size_t',
    ctx_other: pointer,
  })
  const batch = koffi.struct({
    n_tokens: 'int32',
    token: pointer,
    embd: pointer,
    pos: pointer,
    n_seq_id: pointer,
    seq_id: pointer,
    logits: pointer,
  })
  return {
    defaultModelParams: library.func('llama_model_default_params', modelParams, []),
    defaultContextParams: library.func('llama_context_default_params', contextParams, []),
    loadModel: promisify(
      library.func('llama_model_load_from_file', pointer, ['str', modelParams]).async,
    ) as unknown as (path: string, params: object) => Promise<Pointer>,
    openContext: promisify(
      library.func('llama_init_from_model', pointer, [pointer, contextParams]).async,
    ) as unknown as (model: Pointer, params: object) => Promise<Pointer>,
    decode: promisify(library.func('llama_decode', 'int32', [pointer, batch]).async) as unknown as (
      context: Pointer,
      batch: object,
    ) => Promise<number>,
    synchronize: library.func('llama_synchronize', 'void', [pointer]),
    memoryOf: library.func('llama_get_memory', pointer, [pointer]),
    clearMemory: library.func('llama_memory_clear', 'void', [pointer, 'bool']),
    vectorOf: library.func('llama_get_embeddings_seq', pointer, [pointer, 'int32']),
    poolingTypeOf: library.func('llama_pooling_type', 'int', [pointer]),
    widthOf: library.func('llama_model_n_embd_out', 'int32', [pointer]),
    classCountOf: library.func('llama_model_n_cls_out', 'uint32', [pointer]),
    isRecurrent: library.func('llama_model_is_recurrent', 'bool', [pointer]),
    isHybrid: library.func('llama_model_is_hybrid', 'bool', [pointer]),
  }
}

/** Compares values at the beginning, in the middle and at the end of the structs, in case their layout differs. */
function hasExpectedDefaults({ defaultModelParams, defaultContextParams }: Native): boolean {
  const model = defaultModelParams()
  const context = defaultContextParams()
  return (
    [model.n_gpu_layers, model.split_mode, model.load_mode, model.lazy_mode].join() === '-1,1,-1,1' &&
    [model.vocab_only, model.use_extra_bufts, model.load_mtp].join() === 'false,true,false' &&
    [context.n_ctx, context.n_batch, context.n_ubatch, context.n_seq_max].join() === '512,2048,512,1' &&
    [context.pooling_type, context.flash_attn_type, context.defrag_thold].join() === '-1,-1,-1' &&
    [context.type_k, context.type_v, context.embeddings, context.no_perf].join() === '1,1,false,true' &&
    [context.swa_full, context.kv_unified, Number(context.n_samplers)].join() === 'true,false,0'
  )
}

async function loadWeights(
  koffi: Koffi,
  native: Native,
  { modelPath, gpuLayers, onProgress }: WeightsOptions,
): Promise<PoolingWeights> {
  const onFraction = (fraction: number): boolean => {
    onProgress(fraction)
    return true
  }
  const callback = koffi.register(onFraction, koffi.pointer(koffi.proto('bool', ['float', 'void *'])))
  try {
    const model = await native.loadModel(modelPath, {
      ...native.defaultModelParams(),
      n_gpu_layers: gpuLayers,
      lazy_mode: 0,
      progress_callback: callback,
    })
    if (!model) throw new LlmError('upstream', 'llama.cpp could not load the weights.')
    return {
      canBatch: !native.isRecurrent(model) && !native.isHybrid(model),
      openContext: (options) => openContext(koffi, native, model, options),
    }
  } finally {
    koffi.unregister(callback)
  }
}

async function openContext(
  koffi: Koffi,
  native: Native,
  model: Pointer,
  { tokens, texts, flashAttention }: PoolingContextOptions,
): Promise<DecodeTexts> {
  const context = await native.openContext(model, {
    ...native.defaultContextParams(),
    n_ctx: tokens,
    n_batch: tokens,
    n_ubatch: tokens,
    n_seq_max: texts,
    n_threads: 1,
    n_threads_batch: 1,
    embeddings: true,
    flash_attn_type: flashAttention === 'auto' ? -1 : Number(flashAttention),
    // Without one buffer for all sequences, mean pooling is wrong for a decoder and texts of different lengths.
    kv_unified: true,
    swa_full: false,
  })
  if (!context) throw new LlmError('upstream', 'llama.cpp could not open a context for pooling.')
  const memory = native.memoryOf(context)
  const width =
    native.poolingTypeOf(context) === rankPooling ? native.classCountOf(model) : native.widthOf(model)
  const batch = new NativeBatch(koffi, tokens, texts)

  return async (group) => {
    if (memory) native.clearMemory(memory, false)
    const code = await native.decode(context, batch.fill(group))
    if (code !== 0) throw new LlmError('upstream', `llama.cpp could not evaluate a text (code ${code}).`)
    native.synchronize(context)
    return group.map((_, sequence) => {
      const vector = native.vectorOf(context, sequence)
      if (!vector) throw new LlmError('upstream', 'llama.cpp returned no vector for a text.')
      return Float32Array.from(koffi.decode(vector, 'float', width))
    })
  }
}

/** Memory of a `llama_batch`. Text `i` is sequence `i`, and all tokens have an output. */
class NativeBatch {
  readonly #tokens: Int32Array
  readonly #positions: Int32Array
  readonly #sequenceCounts: Int32Array
  readonly #outputs: Int8Array
  /** Sequence ids. llama.cpp wants a pointer to the sequence ids of each token. */
  readonly #sequences: Int32Array
  readonly #sequencePointers: BigUint64Array
  readonly #firstSequence: bigint

  constructor(koffi: Koffi, tokens: number, texts: number) {
    this.#tokens = new Int32Array(tokens)
    this.#positions = new Int32Array(tokens)
    this.#sequenceCounts = new Int32Array(tokens).fill(1)
    this.#outputs = new Int8Array(tokens).fill(1)
    this.#sequences = Int32Array.from({ length: texts }, (_, sequence) => sequence)
    this.#sequencePointers = new BigUint64Array(tokens)
    this.#firstSequence = koffi.address(this.#sequences)
  }

  fill(texts: readonly Text[]): object {
    let length = 0
    for (const [sequence, text] of texts.entries()) {
      const pointer = this.#firstSequence + BigInt(sequence * Int32Array.BYTES_PER_ELEMENT)
      for (const [position, token] of text.entries()) {
        this.#tokens[length] = token
        this.#positions[length] = position
        this.#sequencePointers[length++] = pointer
      }
    }
    return {
      n_tokens: length,
      token: this.#tokens,
      embd: null,
      pos: this.#positions,
      n_seq_id: this.#sequenceCounts,
      seq_id: this.#sequencePointers,
      logits: this.#outputs,
    }
  }
}
