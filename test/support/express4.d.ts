/**
 * Express 4, installed beside Express 5 under another name. The tests use only functions with the same types
 * in both.
 */
declare module 'express4' {
  export * from 'express'
  export { default } from 'express'
}
