/** Builds the pages of the console into `dist/web`. */
import { defineConfig } from 'vite'

export default defineConfig({
  root: new URL('web', import.meta.url).pathname,
  // Relative, because the host app chooses where the console is mounted.
  base: './',
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    target: 'es2023',
    // Fonts and images stay files, so that the Content-Security-Policy needs no `data:`.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Libraries mark modules for servers that render components. Pages are rendered in the browser only.
    rolldownOptions: {
      checks: { moduleLevelDirective: false },
      // `@modelmount/core/models` contains code for Node.js beside the parser of Modelfiles. No page uses it.
      external: [/^node:/],
    },
  },
})
