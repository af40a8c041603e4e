/** What a connection begins with, for statements that take up to `deadlineMs`; the server knows it by its name. */
export function connectionSettings(name: string, deadlineMs: number) {
  return {
    application_name: name,
    client_encoding: 'UTF8',
    statement_timeout: deadlineMs,
    // The locks of a transaction whose connection was lost on the way must not stay for hours.
    idle_in_transaction_session_timeout: 4 * deadlineMs,
    // Nor those of one that was lost amid its messages, where that time does not run, when this host went with it.
    tcp_keepalives_idle: 30,
    tcp_keepalives_interval: 10,
    tcp_keepalives_count: 3,
    TimeZone: 'UTC',
    // In these forms answers are read, whatever the role or the database has been set to.
    DateStyle: 'ISO, MDY',
    bytea_output: 'hex',
  }
}

/** A URL without settings that are ours, in which they would win; PostgreSQL takes their names in any case. */
export function withoutSettings(url: string, settings: object): string {
  const [address = '', ...rest] = url.split('?')
  if (rest.length === 0) return url
  const ours = new Set(Object.keys(settings).map((name) => name.toLowerCase()))
  const others = [...new URLSearchParams(rest.join('?'))].filter(
    ([name]) => !ours.has(name.toLowerCase()),
  )
  return `${address}?${new URLSearchParams(others).toString()}`
}
