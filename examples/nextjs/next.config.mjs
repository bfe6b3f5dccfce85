export default {
  // The folder with the lock file, also when a folder above has one, too.
  turbopack: { root: import.meta.dirname },
  // They start processes and threads from files of their packages.
  serverExternalPackages: [
    '@modelmount/core',
    '@modelmount/tiny-model',
    'node-llama-cpp',
    '@photostructure/sqlite',
  ],
}
