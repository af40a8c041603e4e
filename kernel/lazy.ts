/**
 * Makes something when it is first asked for, once. For what only some runs of the program need: all
 * validators together would take a tenth of a second of each start to compile.
 */
export function lazy<T extends object>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}
