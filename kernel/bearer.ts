import type { IncomingHttpHeaders } from 'node:http'

/** The token in `Authorization: Bearer TOKEN`, or undefined when the header has none. */
export function bearerToken({ authorization }: IncomingHttpHeaders): string | undefined {
  return /^bearer +([^\s]+)$/i.exec(authorization ?? '')?.[1]
}
