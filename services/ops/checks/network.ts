import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import Type from 'typebox'
import { readText } from '../../../kernel/text.ts'
import { defineCheck, failed, passed } from './check.ts'

/** How much of a reply is searched for a text. */
const BODY_BYTES = 256 * 1024
const DEFAULT_TLS_PORT = 443
const DEFAULT_DAYS = 14
const DAY_MS = 86_400_000

const Host = Type.String({ minLength: 1, maxLength: 253 })
const Port = Type.Integer({ minimum: 1, maximum: 65_535 })

/** An address replies with the expected status and text. Redirects are not followed. */
export const httpCheck = defineCheck('http', {
  takes: {
    url: Type.String({ pattern: '^https?://' }),
    /** Any of 200 to 399 when absent. */
    status: Type.Optional(Type.Integer({ minimum: 100, maximum: 599 })),
    contains: Type.Optional(Type.String()),
  },
  level: 'critical',
  nameOf: ({ url }) => `http ${url}`,
  async run({ url, status, contains }, { signal }) {
    const headers = { 'user-agent': 'gatehouse-probe' }
    const response = await fetch(url, { signal, redirect: 'manual', headers })
    const isExpected = status === undefined ? response.status < 400 : response.status === status
    const isSearched = isExpected && contains !== undefined
    const text = isSearched ? (await readText(response, BODY_BYTES)).text : ''
    // The rest of the body may be endless.
    await response.body?.cancel()
    const answered = `answered ${response.status}`
    if (!isExpected) return failed(`${answered}, expected ${status ?? '200 to 399'}`)
    if (isSearched && !text.includes(contains)) return failed(`${answered} without "${contains}"`)
    return passed(answered)
  },
})

/** A port accepts connections. */
export const tcpCheck = defineCheck('tcp', {
  takes: { host: Host, port: Port },
  level: 'critical',
  nameOf: ({ host, port }) => `tcp ${host}:${port}`,
  async run({ host, port }, { signal }) {
    const socket = connect({ host, port })
    try {
      await once(socket, 'connect', { signal })
      return passed('takes connections')
    } finally {
      socket.destroy()
    }
  },
})

/** A certificate is valid for its host, and for some days to come. */
export const tlsCheck = defineCheck('tls', {
  takes: {
    host: Host,
    port: Type.Optional(Port),
    /** How many days the certificate must still be valid. */
    days: Type.Optional(Type.Integer({ minimum: 0 })),
  },
  level: 'critical',
  nameOf: ({ host, port = DEFAULT_TLS_PORT }) => `tls ${host}:${port}`,
  async run({ host, port = DEFAULT_TLS_PORT, days = DEFAULT_DAYS }, { signal }) {
    // Otherwise a certificate that is not trusted would show no date.
    const options = { host, port, rejectUnauthorized: false }
    // TLS takes names only as the server's name: Node throws for an address.
    const socket = connectTls(isIP(host) === 0 ? { ...options, servername: host } : options)
    try {
      await once(socket, 'secureConnect', { signal })
      const left = (Date.parse(socket.getPeerCertificate().valid_to) - Date.now()) / DAY_MS
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

/** A name resolves, and to an expected address. */
export const dnsCheck = defineCheck('dns', {
  takes: {
    host: Host,
    /** Must be among the addresses found. */
    address: Type.Optional(Type.String()),
  },
  level: 'critical',
  nameOf: ({ host }) => `dns ${host}`,
  async run({ host, address }) {
    const found = await lookup(host, { all: true })
    const addresses = found.map((entry) => entry.address)
    const message = `resolves to ${addresses.join(', ')}`
    if (address === undefined || addresses.includes(address)) return passed(message)
    return failed(`${message}, expected ${address}`)
  },
})
