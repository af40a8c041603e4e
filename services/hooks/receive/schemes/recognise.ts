import type { IncomingHttpHeaders } from 'node:http'
import { PRESETS } from './presets/presets.ts'
import type { Preset } from './scheme.ts'

/**
 * The reason of a refusal, and whose headers the delivery has where they are another sender's. For
 * the operator alone: no delivery is accepted by it.
 */
export function withLikeness(
  reason: string,
  headers: IncomingHttpHeaders,
  own: string | null,
): string {
  if (!/ missing\b/.test(reason)) return reason
  const like = likeliest(headers, own)
  return like === undefined
    ? reason
    : `${reason}; the headers are those of ${like.title}: scheme ${like.name}`
}

/** The sender whose headers a delivery has; undefined for headers of nobody who is known. */
export function senderOf(headers: IncomingHttpHeaders): Preset | undefined {
  return likeliest(headers, null)
}

/** The sender most of whose headers are there; undefined where it is the provider's own. */
function likeliest(headers: IncomingHttpHeaders, own: string | null): Preset | undefined {
  let best: Preset | undefined
  let most = 0
  for (const preset of PRESETS) {
    const matches = matchesOf(preset, headers)
    if (matches < most || matches === 0) continue
    if (matches > most || preset.name === own) best = preset
    most = matches
  }
  return best?.name === own ? undefined : best
}

/** How many headers of a sender are there; none without the one that proves it. */
function matchesOf({ scheme }: Preset, headers: IncomingHttpHeaders): number {
  const proof = 'signature' in scheme ? scheme.signature : scheme.token
  const isThere = (name: string): boolean => headers[name] !== undefined
  // Many programs send this header.
  if (!proof.some((name) => name !== 'authorization' && isThere(name))) return 0
  const times = 'signature' in scheme ? scheme.timestamp : []
  const names = new Set([...proof, ...times, ...scheme.type.headers, ...scheme.id.headers])
  return [...names].filter(isThere).length
}
