module.exports = {
  target: 'node20',
  mode: 'production',
  optimization: { minimize: false },
  entry: './nest-app.ts',
  output: { filename: 'nest-app.cjs' },
  resolve: { extensions: ['.ts', '.js'] },
  module: { rules: [{ test: /\.ts$/, loader: 'ts-loader', options: { transpileOnly: true } }] },
  // Packages stay in node_modules, as with `nest build --webpack`.
  externals: [({ request }, done) => (/^[./]/.test(request) ? done() : done(null, `commonjs ${request}`))],
}
