// Transforms ES modules to CommonJS, also those of the packages, which Jest cannot load as they are.
module.exports = {
  testEnvironment: 'node',
  transform: { '\\.m?[jt]s$': '@swc/jest' },
  transformIgnorePatterns: [
    '/node_modules/(?!(@modelmount|@huggingface|@eslint-community|@streamparser|eventsource-parser|nanoid)/)',
  ],
}
