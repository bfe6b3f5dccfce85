/** Where the GGUF file of the built-in model lies on this machine. */
export declare const modelPath: string
