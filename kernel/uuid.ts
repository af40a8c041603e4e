const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** True for text that a `uuid` column can hold, in the usual form. */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}
