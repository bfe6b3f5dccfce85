import type { ModelmountProvider } from '@modelmount/ai-sdk'

/** Situations by their sentences. Each returns what the app sees, as a value that JSON can represent. */
export declare const scriptedSituations: Readonly<Record<string, () => Promise<unknown>>>
export declare const realSituations: Readonly<
  Record<string, (modelmount: ModelmountProvider) => Promise<unknown>>
>
