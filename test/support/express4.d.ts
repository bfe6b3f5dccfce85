/** Express 4 beside Express 5, under another name: what we use of the two has the same types. */
declare module 'express4' {
  export * from 'express'
  export { default } from 'express'
}
