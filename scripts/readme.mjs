// Prepares the README of a package for the registry's page, which knows no other file of this repository.

/**
 * Links to files of this repository become links below `home`, or plain text with the path while there is no address.
 */
export const toRegistryReadme = (text, folder, home) =>
  text.replaceAll(/\[([^\]]+)\]\((?![a-z]+:|#)([^)\s]+)\)/g, (_link, label, target) => {
    const { pathname, hash } = new URL(target, `file:///${folder}/`)
    if (home !== undefined) return `[${label}](${home}${pathname}${hash})`
    return /README\.md$/.test(pathname) && label === 'Modelmount'
      ? label
      : `${label} (\`${pathname.slice(1)}\`)`
  })
