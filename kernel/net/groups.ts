/** Each is looked up with each request of a page. */
export const MAX_GROUPS = 500

const MAX_NAME_LENGTH = 100

/** What the name of a group may be, for messages. */
export const GROUP_NAME_FORM =
  `a name of 1 to ${MAX_NAME_LENGTH} characters, without control characters, ` +
  'commas, semicolons and vertical bars'

/**
 * The name of a group as it is compared: case counts, as `Ops` and `ops` may be two groups.
 * Undefined for other text.
 */
export function readGroupName(text: string): string | undefined {
  const name = text.trim()
  if (name === '' || name.length > MAX_NAME_LENGTH) return undefined
  return /[\p{C},;|]/u.test(name) ? undefined : name
}

/**
 * The groups in a proxy's header, each once. Authelia and oauth2-proxy separate them by commas,
 * authentik by vertical bars. A name that no group may have is in no link, so it is left out.
 * Undefined for too many: without some of them, a person would be refused without a reason.
 */
export function readGroups(text: string): readonly string[] | undefined {
  const names = text.split(/[,|]/).map(readGroupName)
  const groups = [...new Set(names.filter((name) => name !== undefined))]
  return groups.length > MAX_GROUPS ? undefined : groups
}
