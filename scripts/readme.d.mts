export function toRegistryReadme(text: string, folder: string, home: string | undefined): string
