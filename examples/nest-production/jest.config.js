/** Jest with TypeScript and decorators. Transforms the packages that are ES modules to CommonJS, too. */
export default {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/*.test.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' }, // Imports end in `.js`, files in `.ts`.
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
