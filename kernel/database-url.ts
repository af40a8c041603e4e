/** The parts of a database's URL; together they are the whole text but for the `?`. */
export interface DatabaseUrl {
  /** `postgres://user:password@`; without a user `postgres://`. */
  start: string
  /** One or several, with commas between them. None where the parameter `host` names them. */
  hosts: string
  /** `/database`. */
  path: string
  query: string
}

/**
 * Splits a URL as libpq has it. `URL` can't: there may be several hosts, a user without a host, or
 * a password with `@`.
 */
export function splitDatabaseUrl(text: string): DatabaseUrl {
  const [, start = '', hosts = '', path = '', query = ''] =
    /^(\w+:\/\/(?:[^/?]*@)?)([^/?]*)([^?]*)\??(.*)$/s.exec(text) ?? []
  return { start, hosts, path, query }
}
