import { isLoopbackName } from '../../../../kernel/net/addresses.ts'
import { trimBoth } from '../../../../kernel/text.ts'

/** How short links are written: with the keyword, and with the public address. */
export interface ShortAddress {
  keyword: string
  /** Public address of the service, without a slash at its end. */
  base: string
}

/** People say `go/docs` whatever the keyword is. */
const USUAL_KEYWORD = 'go'

/** Whether a text begins with `http://` or `https://`: then its host is no link's name. */
export function hasScheme(text: string): boolean {
  return /^https?:\/\//i.test(text)
}

/**
 * What follows the host in a short link as people write it, without slashes in front: `docs/a?b=1`
 * of `go/docs/a?b=1`, `http://go/docs/a?b=1` or the whole address. Undefined for another text.
 */
export function behindHost(text: string, short: ShortAddress): string | undefined {
  const [, host = '', rest = ''] = /^(?:https?:\/\/)?([^/?#]+)(.*)$/is.exec(text) ?? []
  const isAddress = hasScheme(text) || rest.startsWith('/')
  return isAddress && isShortHost(host, short) ? rest.replace(/^\/+/, '') : undefined
}

/** Without a port, or with the one of the public address; all names of the loopback are one. */
function isShortHost(host: string, { keyword, base }: ShortAddress): boolean {
  const url = URL.parse(`http://${host}`)
  if (url === null) return false
  const { hostname, port } = URL.parse(base) ?? { hostname: keyword, port: '' }
  if (url.port !== '' && url.port !== port) return false
  if ([USUAL_KEYWORD, keyword, hostname].includes(url.hostname)) return true
  return isLoopbackName(url.hostname) && isLoopbackName(hostname)
}

/** The name that people mean in a field of a new name: `team` for `go/Team` and ` team/`. */
export function nameTyped(text: string, short: ShortAddress): string {
  const typed = text.trim().toLowerCase()
  return trimBoth(behindHost(typed, short) ?? typed, /\//)
}
