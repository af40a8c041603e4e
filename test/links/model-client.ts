import { Agent, request } from 'node:http'
import type { Owner } from '../helpers/owner.ts'
import type { Call } from './model-calls.ts'

/** An answer, whole. */
export type Reply = {
  status: number
  location: string | undefined
  etag: string | undefined
  text: string
}

/** A request on one kept connection; a path such as `/links` stands for `/api/v1/links`, `/-aa` for `/aa`. */
export type Send = (
  method: string,
  path: string,
  bearer?: string | undefined,
  body?: unknown,
  ifMatch?: string | undefined,
) => Promise<Reply>

/** Thousands of calls: without a connection and an entry in the transcript for each. */
export function openSend(t: Owner, base: string): Send {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  return (method, path, bearer, body, ifMatch) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers = {
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      ...(text === undefined ? {} : { 'content-type': 'application/json' }),
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
    }
    const url = path.startsWith('/-') ? `${base}/${path.slice(2)}` : `${base}/api/v1${path}`
    return new Promise((resolve, reject) => {
      const sent = request(url, { method, agent, headers }, (incoming) => {
        let got = ''
        incoming.setEncoding('utf8').on('data', (piece: string) => (got += piece))
        incoming.on('error', reject).on('end', () => {
          const { statusCode = 0, headers: answered } = incoming
          const { location, etag } = answered
          resolve({ status: statusCode, location, etag, text: got })
        })
      })
      sent.on('error', reject).end(text)
    })
  }
}

/** Method, path and body of a call. */
export function requestOf(call: Call): [method: string, path: string, body?: unknown] {
  switch (call.op) {
    case 'me':
      return ['GET', '/users/me']
    case 'links':
    case 'tags':
      return ['GET', `/${call.op}?limit=${call.limit}`]
    case 'adminLinks':
      return ['GET', `/admin/links?limit=${call.limit}`]
    case 'adminUsers':
      return ['GET', `/admin/users?limit=${call.limit}`]
    case 'tagLinks':
      return ['GET', `/tags/${call.tag}/links?limit=${call.limit}`]
    case 'create':
      return ['POST', '/links', { ...call.fields, ...wrongField(call) }]
    case 'put':
      return ['PUT', `/links/${call.link}`, { ...call.fields, ...wrongField(call) }]
    case 'get':
      return ['GET', `/links/${call.link}`]
    case 'delete':
      return ['DELETE', `/links/${call.link}`]
    case 'restore':
      return ['POST', `/links/${call.link}/restore`]
    case 'owners':
    case 'shares':
      return ['GET', `/links/${call.link}/${call.op}`]
    case 'addOwner':
      return ['POST', `/links/${call.link}/owners`, { email: call.email }]
    case 'addShare':
      return ['POST', `/links/${call.link}/shares`, { email: call.email }]
    case 'handOver':
      return ['PUT', `/links/${call.link}/owner`, { email: call.email }]
    case 'removeOwner':
      return ['DELETE', `/links/${call.link}/owners/${call.user}`]
    case 'removeShare':
      return ['DELETE', `/links/${call.link}/shares/${call.user}`]
    case 'role':
      return ['PUT', `/admin/users/${call.user}/role`, { role: call.role }]
    case 'tokens':
      return ['GET', '/tokens']
    case 'makeToken':
      return ['POST', '/tokens', { ...call.body, ...wrongField(call) }]
    case 'revoke':
      return ['DELETE', `/tokens/${call.token}`]
    case 'visit':
      return ['GET', `/-${call.slug}`]
  }
}

function wrongField({ wrong }: Extract<Call, { wrong: unknown }>): object {
  return wrong === undefined ? {} : { [wrong.field]: wrong.value }
}
