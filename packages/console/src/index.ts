/** The console in the browser, for a framework of your choice. */
export {}
