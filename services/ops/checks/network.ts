import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Static } from 'typebox'
import type { DnsCheck, HttpCheck, TcpCheck, TlsCheck } from '../inventory/schema.ts'
import { readText } from '../read-text.ts'
import type { CheckContext, Finding } from './finding.ts'

/** Bytes of an answer that are searched for a text. */
const BODY_BYTES = 256 * 1024
const DAYS = 14
const DAY_MS = 86_400_000

/** An address answers with the status and text that are expected. Redirects are answers. */
export async function httpCheck(
  { url, status, contains }: Static<typeof HttpCheck>,
  { signal }: CheckContext,
): Promise<Finding> {
  const response = await fetch(url, {
    signal,
    redirect: 'manual',
    headers: { 'user-agent': 'gatehouse-probe' },
  })
  const good = status === undefined ? response.status < 400 : response.status === status
  const has =
    !good ||
    contains === undefined ||
    (await readText(response, BODY_BYTES)).text.includes(contains)
  // What nobody has asked for may be endless.
  await response.body?.cancel()
  if (!good) {
    const expected = status === undefined ? '200 to 399' : String(status)
    return { ok: false, message: `answered ${response.status}, expected ${expected}` }
  }
  if (!has) {
    return { ok: false, message: `answered ${response.status} without "${contains}"` }
  }
  return { ok: true, message: `answered ${response.status}` }
}

/** A port takes connections. */
export async function tcpCheck(
  { host, port }: Static<typeof TcpCheck>,
  { signal }: CheckContext,
): Promise<Finding> {
  const socket = connect({ host, port })
  try {
    await once(socket, 'connect', { signal })
    return { ok: true, message: 'takes connections' }
  } finally {
    socket.destroy()
  }
}

/** A certificate is good for this host, and for some days to come. */
export async function tlsCheck(
  { host, port = 443, days = DAYS }: Static<typeof TlsCheck>,
  { signal }: CheckContext,
): Promise<Finding> {
  // What is wrong with it is told below: without that, a certificate that is refused shows no date.
  const options = { host, port, rejectUnauthorized: false }
  // The protocol has names alone for what is asked of a server, and the client refuses an address there.
  const socket = connectTls(isIP(host) === 0 ? { ...options, servername: host } : options)
  try {
    await once(socket, 'secureConnect', { signal })
    const left = (Date.parse(socket.getPeerCertificate().valid_to) - Date.now()) / DAY_MS
    const until = `valid for ${Math.floor(left)} more days`
    if (left < 0) return { ok: false, message: 'the certificate has expired' }
    if (!socket.authorized) {
      return { ok: false, message: `the certificate is not trusted: ${socket.authorizationError}` }
    }
    return { ok: left >= days, message: `the certificate is ${until}` }
  } finally {
    socket.destroy()
  }
}

/** A name resolves, to an address that is expected. */
export async function dnsCheck({ host, address }: Static<typeof DnsCheck>): Promise<Finding> {
  const found = await lookup(host, { all: true })
  const addresses = found.map((entry) => entry.address)
  const message = `resolves to ${addresses.join(', ')}`
  if (address === undefined || addresses.includes(address)) return { ok: true, message }
  return { ok: false, message: `${message}, expected ${address}` }
}
