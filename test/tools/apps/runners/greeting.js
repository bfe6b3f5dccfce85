export const greeting = 'first version'
