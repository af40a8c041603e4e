import type { ConfigSource } from '../../kernel/config.ts'
import { hostName, isLoopbackName } from '../../kernel/net/guard.ts'
import { placeOf } from '../places.ts'
import type { ServiceName } from '../service-names.ts'
import { doubt, fine, type Finding } from './finding.ts'

const WHAT = 'GATEHOUSE_TRUSTED_PROXIES'
const UNSEEN =
  "a proxy that leaves no sign of itself can't be seen, and everybody who comes through it counts as a user of this machine"

/** Which proxies are trusted, and what Gatehouse can't see of others. */
export function proxyFindings(
  config: ConfigSource,
  services: readonly ServiceName[],
): readonly Finding[] {
  const trusted = config.origins.get(WHAT)
  if (trusted !== undefined) return [fine(WHAT, `${trusted.text}; of others, ${UNSEEN}`)]
  const open = services.find((service) => isPublic(placeOf(service, config).baseUrl))
  if (open === undefined)
    return [fine(WHAT, `none; ${UNSEEN}: set this before you put a proxy in front`)]
  const base = `${open.toUpperCase()}_BASE_URL`
  return [
    doubt(
      WHAT,
      `none, but ${base} is a public address; ${UNSEEN}: set this to the proxy's address`,
    ),
  ]
}

function isPublic(baseUrl: string | undefined): boolean {
  return baseUrl !== undefined && !isLoopbackName(hostName(new URL(baseUrl).host))
}
