import { once } from 'node:events'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import * as Type from '../../../../kernel/schema.ts'
import {
  CaFile,
  clientWanted,
  Days,
  daysLeft,
  describeEnd,
  firstEnd,
  trustOf,
} from './certificates.ts'
import { addressOf, defineCheck, failed, Host, passed, Port } from './check.ts'

const DEFAULT_PORT = 443
const DEFAULT_DAYS = 14

/** The certificates of a server are valid for its host, and for some days to come. */
export const tlsCheck = defineCheck('tls', {
  takes: {
    host: Host,
    port: Type.Optional(Port),
    days: Type.Optional(Days),
    ca: Type.Optional(CaFile),
  },
  level: 'critical',
  nameOf: ({ host, port = DEFAULT_PORT }) => `tls ${host}:${port}`,
  peerOf: ({ host, port = DEFAULT_PORT }) => `${host}:${port}`,
  async run({ host: given, port = DEFAULT_PORT, days = DEFAULT_DAYS, ca }, { signal }) {
    const trust = await trustOf(ca)
    if ('state' in trust) return trust
    const host = addressOf(given)
    // Otherwise a certificate that is not trusted would show no date.
    const options = { ...trust, host, port, rejectUnauthorized: false }
    // TLS takes names only as the server's name: Node throws for an address.
    const socket = connect(isIP(host) === 0 ? { ...options, servername: host } : options)
    try {
      await once(socket, 'secureConnect', { signal })
      const end = firstEnd(socket)
      if (end === undefined) return failed('the server has sent no certificate')
      const left = daysLeft(end)
      if (left < 0) return failed(describeEnd(end))
      if (!socket.authorized) {
        return failed(`the certificate is not trusted: ${socket.authorizationError}`)
      }
      const message = describeEnd(end)
      return left >= days ? passed(message) : failed(`${message}, expected ${days}`)
    } catch (error) {
      const wanted = clientWanted(error, firstEnd(socket))
      if (wanted === undefined) throw error
      return failed(wanted)
    } finally {
      socket.destroy()
    }
  },
})
