export declare const mockSituations: Readonly<
  Record<string, () => Promise<{ readonly ours: unknown; readonly mock: unknown }>>
>
