/** The entry point `@modelmount/core/models`: models, their details, and Modelfiles. */

export type { Tensor } from './gguf/gguf.ts'
export type { Capability, ModelDetails } from './gguf/model-details.ts'
export type { Adapter, Model } from './model.ts'
export type { CreateModelRequest } from './modelfile/create-request.ts'
export type { ModelfileDefaults, ModelfileMessage } from './modelfile/defaults.ts'
export { type Modelfile, parseModelfile, printModelfile } from './modelfile/modelfile.ts'
export { type Digest, parseDigest } from './ollama-store/digest.ts'
export type { ModelConfig } from './ollama-store/manifest.ts'
export type { Blobs } from './ollama-store/store-contracts.ts'
export type { Progress, TransferOptions } from './registry/progress.ts'
