module.exports = {
  target: 'node20',
  mode: 'production',
  optimization: { minimize: false },
  entry: './nest-app.ts',
  output: { filename: 'everything.cjs' },
  resolve: { extensions: ['.ts', '.js'] },
  module: { rules: [{ test: /\.ts$/, loader: 'ts-loader', options: { transpileOnly: true } }] },
  // All packages but those of Modelmount stay in node_modules.
  externals: [
    ({ request }, done) => (/^([./]|@modelmount)/.test(request) ? done() : done(null, `commonjs ${request}`)),
  ],
}
