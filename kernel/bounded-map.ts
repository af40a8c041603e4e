/** Values by key that take a bounded number of bytes. */
export interface BoundedMap<V> {
  get(key: string): V | undefined
  /** Keeps a value as the newest one, and drops the oldest ones until all fit. */
  set(key: string, value: V): void
  delete(key: string): void
  readonly size: number
  readonly bytes: number
}

/**
 * A map that drops what was set longest ago once all takes more than `maxBytes`. `bytesOf` always
 * gives the same for the same key and value.
 */
export function createBoundedMap<V>(
  maxBytes: number,
  bytesOf: (key: string, value: V) => number,
): BoundedMap<V> {
  /** The first was set longest ago. */
  const values = new Map<string, V>()
  let bytes = 0

  function remove(key: string) {
    const value = values.get(key)
    if (value === undefined) return
    values.delete(key)
    bytes -= bytesOf(key, value)
  }

  return {
    get: (key) => values.get(key),
    set(key, value) {
      remove(key)
      values.set(key, value)
      bytes += bytesOf(key, value)
      for (const oldest of values.keys()) {
        if (bytes <= maxBytes) return
        remove(oldest)
      }
    },
    delete: remove,
    get size() {
      return values.size
    },
    get bytes() {
      return bytes
    },
  }
}
