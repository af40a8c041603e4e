import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import * as Type from '../../../../kernel/schema.ts'
import { messageOf } from '../../../../kernel/log.ts'
import { escapeControls } from '../../../../kernel/text.ts'
import { Path, unknown, type Finding } from './check.ts'

const DAY_MS = 86_400_000
/** How many certificates of a chain are read. Servers send two or three. */
const MAX_CHAIN = 20
/** Characters of the name of a certificate in a message. */
const MAX_NAME = 100

/** How many days a certificate must still be valid. */
export const Days = Type.Integer({ minimum: 0 })
/** A PEM file of the authorities that are trusted instead of the system's. */
export const CaFile = Path

/** The end of a certificate, and whose it is. */
export interface CertificateEnd {
  name: string
  ends: Date
}

/** Of the chain that a server has sent, what ends first; undefined before it has sent any. */
export function firstEnd(socket: TLSSocket): CertificateEnd | undefined {
  let first: CertificateEnd | undefined
  let certificate: Partial<DetailedPeerCertificate> | undefined = socket.getPeerCertificate(true)
  for (let place = 0; place < MAX_CHAIN && certificate?.valid_to !== undefined; place++) {
    const ends = new Date(certificate.valid_to)
    if (first === undefined || ends < first.ends) first = { name: nameOf(certificate), ends }
    // The last one names itself.
    const issuer: Partial<DetailedPeerCertificate> | undefined = certificate.issuerCertificate
    certificate = issuer === certificate ? undefined : issuer
  }
  return first
}

function nameOf({ subject, subjectaltname }: Partial<DetailedPeerCertificate>): string {
  // A name may be there several times.
  const [name = 'the server'] = [subject?.CN ?? subject?.O ?? subjectaltname ?? []].flat()
  return escapeControls(name.slice(0, MAX_NAME).toWellFormed())
}

/** How many days it is still valid; negative once it has ended. */
export function daysLeft({ ends }: CertificateEnd): number {
  return (ends.getTime() - Date.now()) / DAY_MS
}

/** Such as `the certificate of shop.test is valid for 12 more days`. */
export function describeEnd(end: CertificateEnd): string {
  const days = daysLeft(end)
  const whole = Math.floor(Math.abs(days))
  const what = `the certificate of ${end.name}`
  return days < 0 ? `${what} ended ${whole} days ago` : `${what} is valid for ${whole} more days`
}

/** Reads authorities from a file. A file without any is a finding: OpenSSL itself accepts it. */
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

/** How a server says that it wants a certificate of its client: TLS 1.3 has words for it, 1.2 has not. */
const CLIENT_WANTED = /alert (certificate required|handshake failure|bad certificate)/

/** What to say of a server that ended a connection because we have no certificate; undefined for another error. */
export function clientWanted(error: unknown, end: CertificateEnd | undefined): string | undefined {
  if (!CLIENT_WANTED.test(messageOf(error))) return undefined
  if (end === undefined) {
    return "the server refuses the TLS handshake: it may ask for a client's certificate, and checks have none"
  }
  return `the server asks for a client's certificate, and checks have none; ${describeEnd(end)}`
}
