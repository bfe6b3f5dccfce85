/** Bundles the page for the browser. */
export default {
  input: 'page.jsx',
  platform: 'browser',
  transform: { define: { 'process.env.NODE_ENV': '"production"' } },
  output: { file: 'public/page.js', minify: true },
  // React's packages mark code for the browser, which all of this bundle is.
  onLog: (level, log, report) => log.code === 'MODULE_LEVEL_DIRECTIVE' || report(level, log),
}
