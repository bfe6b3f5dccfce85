export default {
  // They start processes and threads from files of their packages.
  serverExternalPackages: [
    '@modelmount/core',
    '@modelmount/tiny-model',
    'node-llama-cpp',
    '@photostructure/sqlite',
  ],
}
