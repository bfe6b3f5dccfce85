// TypeScript with decorators, for Nest. Also transforms the packages, which are ES modules, to CommonJS.
module.exports = {
  testEnvironment: 'node',
  testMatch: ['**/*.spec.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' }, // imports end in `.js`, files in `.ts`
  transform: {
    '\\.m?[jt]s$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
        },
      },
    ],
  },
  transformIgnorePatterns: [
    '/node_modules/(?!(@modelmount|@nestjs|@huggingface|@eslint-community|@streamparser|eventsource-parser|nanoid)/)',
  ],
}
