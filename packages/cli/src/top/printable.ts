/** Clients choose the names of models. Control characters would change the terminal. */
export const printable = (text: string): string => text.replaceAll(/\p{C}/gu, '').slice(0, 60)
