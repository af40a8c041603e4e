import type { SealedHeaders } from '../../../../db/ops/watch/checks.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import { objectOf } from '../../../../kernel/json.ts'
import type { SecretBox } from '../../../../kernel/secret-box.ts'

// Headers of requests that checks made by hand send. Their values may be secrets: they are stored
// encrypted, each bound to its check and header, and never shown again.

/** Stands for a stored value where a check is shown, and keeps it where one is changed. */
export const CONFIGURED = 'configured'

/** Where headers are stored. */
export interface HeaderPlace {
  service: string
  name: string
}

type Box = () => SecretBox | undefined

const MAX_HEADERS = 20
const MAX_VALUE = 4_096
const NAME = /^[A-Za-z\d!#$%&'*+.^_`|~-]{1,100}$/
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/
const NO_KEY =
  'headers are stored encrypted: set GATEHOUSE_SECRET_KEY, as openssl rand -base64 32 prints ' +
  'one, and start again'

/** Encrypts the given values. Throws 400 without a key, and for an invalid header. */
export function sealHeaders(
  box: Box,
  place: HeaderPlace,
  given: unknown,
  stored: SealedHeaders,
): SealedHeaders {
  const headers = Object.entries(objectOf(given))
  if (headers.length > MAX_HEADERS) throw wrong(`headers must be ${MAX_HEADERS} at most`)
  const sealed = headers.map(([header, value]) => {
    if (!NAME.test(header)) throw wrong('headers must have names that HTTP knows')
    const known = stored[header]
    if (value === CONFIGURED && known !== undefined) return [header, known]
    return [header, seal(box, place, header, String(value))]
  })
  return Object.fromEntries(sealed)
}

function seal(box: Box, place: HeaderPlace, header: string, value: string): string {
  if (value === CONFIGURED) throw wrong(`headers has no value yet for ${header}; give it`)
  if (!VALUE.test(value) || value.length > MAX_VALUE) {
    throw wrong(`headers must have printable ASCII, ${MAX_VALUE} characters at most, as values`)
  }
  const open = box()
  if (open === undefined) throw wrong(NO_KEY)
  return open.seal(value, boundTo(place, header)).toString('base64')
}

/** The values, or why they can't be read. */
export function openHeaders(
  box: Box,
  place: HeaderPlace,
  sealed: SealedHeaders,
): { headers: Readonly<Record<string, string>> } | { obstacle: string } {
  const headers: Record<string, string> = {}
  for (const [header, value] of Object.entries(sealed)) {
    const opened = box()?.open(Buffer.from(value, 'base64'), boundTo(place, header)) ?? NO_BOX
    if ('problem' in opened) return { obstacle: `its headers can't be read: ${opened.problem}` }
    headers[header] = opened.text
  }
  return { headers }
}

const NO_BOX = { problem: 'GATEHOUSE_SECRET_KEY is not set' }

function boundTo({ service, name }: HeaderPlace, header: string): string {
  return JSON.stringify(['check', service, name, header])
}

function wrong(message: string) {
  return badRequest(message, 'headers')
}
