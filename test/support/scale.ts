/** How many times what is true each time is tried: a sample, or all of it, which takes minutes more. */
export const times = (all: number, sample: number): number => (process.env.MODELMOUNT_THOROUGH ? all : sample)
