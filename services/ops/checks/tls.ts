import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import Type from 'typebox'
import { messageOf } from '../../../kernel/log.ts'
import { defineCheck, failed, Host, passed, Path, Port, unknown, type Finding } from './check.ts'

const DAY_MS = 86_400_000
const DEFAULT_PORT = 443
const DEFAULT_DAYS = 14

/** How many days a certificate must still be valid. */
export const Days = Type.Integer({ minimum: 0 })
/** A PEM file of the authorities that are trusted instead of the system's. */
export const CaFile = Path

/** How many days a certificate is still valid, by the text of its end. */
export function daysLeft({ valid_to }: { valid_to: string }): number {
  return (Date.parse(valid_to) - Date.now()) / DAY_MS
}

/** Reads authorities from a file. Gives a finding if it has none: OpenSSL accepts such a file. */
export async function trustOf(ca: string | undefined): Promise<{ ca?: string } | Finding> {
  if (ca === undefined) return {}
  try {
    const pem = await readFile(ca, 'utf8')
    void new X509Certificate(pem)
    return { ca: pem }
  } catch (error) {
    const problem = messageOf(error)
    return unknown(`the authorities of ${ca} can't be read: ${problem}; name a PEM file as ca`)
  }
}

/** A certificate is valid for its host, and for some days to come. */
export const tlsCheck = defineCheck('tls', {
  takes: {
    host: Host,
    port: Type.Optional(Port),
    days: Type.Optional(Days),
    ca: Type.Optional(CaFile),
  },
  level: 'critical',
  nameOf: ({ host, port = DEFAULT_PORT }) => `tls ${host}:${port}`,
  async run({ host, port = DEFAULT_PORT, days = DEFAULT_DAYS, ca }, { signal }) {
    const trust = await trustOf(ca)
    if ('state' in trust) return trust
    // Otherwise a certificate that is not trusted would show no date.
    const options = { ...trust, host, port, rejectUnauthorized: false }
    // TLS takes names only as the server's name: Node throws for an address.
    const socket = connect(isIP(host) === 0 ? { ...options, servername: host } : options)
    try {
      await once(socket, 'secureConnect', { signal })
      const left = daysLeft(socket.getPeerCertificate())
      if (left < 0) return failed('the certificate has expired')
      if (!socket.authorized) {
        return failed(`the certificate is not trusted: ${socket.authorizationError}`)
      }
      const message = `the certificate is valid for ${Math.floor(left)} more days`
      return left >= days ? passed(message) : failed(`${message}, expected ${days}`)
    } finally {
      socket.destroy()
    }
  },
})
