/** How many times what is true each time is tried: a sample, and all of it where all suites run. */
export const times = (all: number, sample: number): number =>
  process.env.MODELMOUNT_ALL_SUITES ? all : sample
