import { execFileSync } from 'node:child_process'
import { createPrivateKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { get, post, type Outbound, type OutboundRequest } from '../../../kernel/net/outbound.ts'
import { listen } from '../../helpers/listen.ts'
import { temporaryFolder, type Owner } from '../../helpers/owner.ts'

// The hosts from which keys of senders are fetched, and what their senders sign.

/** What a host answers: a status, a text, or the beginning of one that never ends. */
type Answer = number | string | { begins: string }
type Asked = Omit<OutboundRequest, 'body'> & { body?: Buffer }

/** All hosts of the internet: what each address answers, and what was asked for. */
type KeyHosts = Outbound & {
  answers: Map<string, Answer | ((body: string) => Answer)>
  asked: Asked[]
  /** Requests to addresses that begin like this. */
  countOf(address: string): number
}

/** A real server that stands for every host: only the names are led to it. */
export async function startKeyHosts(t: Owner): Promise<KeyHosts> {
  const answers: KeyHosts['answers'] = new Map()
  const server = createServer((incoming, response) => {
    const parts: Buffer[] = []
    incoming.on('data', (part: Buffer) => parts.push(part))
    incoming.on('end', () => {
      const found = answers.get(`https://${incoming.headers.host}${incoming.url}`) ?? 404
      const answer = typeof found === 'function' ? found(Buffer.concat(parts).toString()) : found
      if (typeof answer === 'number') response.writeHead(answer).end()
      else if (typeof answer === 'string') response.end(answer)
      else response.write(answer.begins)
    })
  })
  const base = `http://127.0.0.1:${await listen(t, server)}`
  const asked: Asked[] = []
  const led = <R extends Asked>(request: R): R => {
    asked.push(request)
    const { url, headers } = request
    const there = new URL(url.pathname + url.search, base)
    // No test waits for the whole time of a slow host.
    const timeoutMs = Math.min(request.timeoutMs, 1_000)
    const host = { ...headers, host: url.host }
    return { ...request, url: there, headers: host, timeoutMs, trusted: true }
  }
  return {
    answers,
    asked,
    countOf: (address) => asked.filter(({ url }) => url.href.startsWith(address)).length,
    get: (request) => get(led(request)),
    post: (request) => post(led(request)),
  }
}

/** A private key with its certificate. */
type Certified = { key: KeyObject; pem: string }

/** Makes a certificate of RSA, by openssl. */
export async function makeCertificate(t: Owner, bits = 2_048): Promise<Certified> {
  const folder = await temporaryFolder(t, 'certificate')
  const [key, pem] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const kind = ['-newkey', `rsa:${bits}`, '-nodes', '-subj', '/CN=keys.example', '-days', '2']
  const args = ['req', '-x509', ...kind, '-keyout', key, '-out', pem]
  execFileSync('openssl', args, { stdio: 'ignore' })
  return { key: createPrivateKey(readFileSync(key)), pem: readFileSync(pem, 'utf8') }
}

export const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:orders'
export const SNS = 'https://sns.eu-west-1.amazonaws.com'
export const SNS_CERTIFICATE = `${SNS}/SimpleNotificationService-0123456789abcdef.pem`
export const CONFIRM = `${SNS}/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=2336412f37`

/** The lines that are signed, as the documentation of SNS lists them for the types of messages. */
const SIGNED = 'Message MessageId Subject SubscribeURL Timestamp Token TopicArn Type'.split(' ')
/** The members that a question for a confirmation has besides. */
export const ASKS = {
  Type: 'SubscriptionConfirmation',
  Token: '2336412f37',
  SubscribeURL: CONFIRM,
}

type Members = Readonly<Record<string, string>>

let made = 0

/** A message of SNS, signed: a notification, or what the changes say. */
export function snsMessage(key: KeyObject, changes: Members = {}): Members {
  const members: Members = {
    Type: 'Notification',
    MessageId: `22b80b92-fdea-4c2c-8f9d-bdfb0c7b${String(made++).padStart(4, '0')}`,
    TopicArn: TOPIC,
    Message: 'Hello "wörld"!\n',
    Timestamp: '2026-11-28T00:54:06.655Z',
    SignatureVersion: '2',
    SigningCertURL: SNS_CERTIFICATE,
    ...changes,
  }
  const text = SIGNED.filter((name) => name in members)
    .map((name) => `${name}\n${members[name]}\n`)
    .join('')
  const hash = members['SignatureVersion'] === '1' ? 'sha1' : 'sha256'
  const signature = sign(hash, Buffer.from(text), key)
  return { ...members, Signature: signature.toString('base64') }
}

export const PAYPAL_CERTIFICATE =
  'https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-a5cafa77'

/** The headers of a delivery of PayPal. */
export function paypalHeaders(key: KeyObject, webhook: string, body: string): Members {
  const [id, time] = ['dfb3be50-fd74-11e4-8bf3-77339302725b', '2026-11-28T15:45:13Z']
  const text = `${id}|${time}|${webhook}|${crc32(body)}`
  return {
    'paypal-transmission-id': id,
    'paypal-transmission-time': time,
    'paypal-transmission-sig': sign('sha256', Buffer.from(text), key).toString('base64'),
    'paypal-auth-algo': 'SHA256withRSA',
    'paypal-cert-url': PAYPAL_CERTIFICATE,
  }
}

/** A key of an issuer, with its JSON Web Key. */
type IssuerKey = { key: KeyObject; jwk: object; kid: string }

export function issuerKey(kid: string, type: 'rsa' | 'ec' = 'rsa'): IssuerKey {
  const { privateKey, publicKey } =
    type === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: 2_048 })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig' }
  return { key: privateKey, jwk, kid }
}

/** A token by a key; `head` changes its header, and with `raw` another signature is put there. */
export function token(
  { key, kid }: IssuerKey,
  claims: object,
  head: object = {},
  raw?: (text: string) => Buffer,
) {
  const alg = key.asymmetricKeyType === 'ec' ? 'ES256' : 'RS256'
  const parts = [{ alg, kid, typ: 'JWT', ...head }, claims].map((part) => {
    return Buffer.from(JSON.stringify(part)).toString('base64url')
  })
  const text = parts.join('.')
  const signed = () => sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' })
  return `${text}.${(raw?.(text) ?? signed()).toString('base64url')}`
}

/** Lets a host give an issuer's keys, as its discovery document says; `changes` are of that document. */
export function publishKeys(
  { answers }: KeyHosts,
  issuer: string,
  keys: readonly object[],
  changes: object = {},
) {
  const document = { issuer, jwks_uri: `${issuer}/keys`, ...changes }
  answers.set(`${issuer}/.well-known/openid-configuration`, JSON.stringify(document))
  answers.set(`${issuer}/keys`, JSON.stringify({ keys }))
}
