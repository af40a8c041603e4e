/** Whether a list of hosts names the one that a URL leads to. */
export type HostSet = (url: URL) => boolean

const ENTRY = /^(\[[\da-f:.]+\]|[^\s:/?#@[\]]+)(?::(\d{1,5}))?$/i

/**
 * Parses `localhost:3000, 10.0.0.5, [::1]`: an entry without a port means every port. Throws a
 * SyntaxError that counts to the bad entry and does not quote it: it may be a URL with a password.
 */
export function parseHosts(text: string): HostSet {
  const entries = text.split(',').map((entry, at) => parseEntry(entry.trim(), at + 1))
  return (url) =>
    entries.some(
      ({ host, port }) => host === url.hostname && (port === undefined || port === portOf(url)),
    )
}

function parseEntry(
  entry: string,
  number: number,
): { readonly host: string; readonly port: number | undefined } {
  const [, host = '', port] = ENTRY.exec(entry) ?? []
  // The URL parser writes a host as it does for targets: lower case, one spelling of each address.
  const url = `http://${host}/`
  const good = host !== '' && URL.canParse(url) && (port === undefined || isPort(Number(port)))
  if (!good) throw new SyntaxError(`entry ${number} is no host or host:port`)
  return { host: new URL(url).hostname, port: port === undefined ? undefined : Number(port) }
}

function isPort(port: number): boolean {
  return port >= 1 && port <= 65_535
}

/** The port that a connection goes to: the URL names none that is its scheme's own. */
function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}
