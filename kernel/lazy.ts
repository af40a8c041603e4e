/**
 * Makes something when it is first asked for, once. For what only some runs of the program need: all
 * validators together take some twenty milliseconds of a start to compile.
 */
export function lazy<T extends object>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}
