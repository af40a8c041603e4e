import type { IncomingHttpHeaders } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { t } from 'tap'
import { makeSigningSecret, signingKey } from '../../../services/hooks/receive/schemes/keys.ts'
import { BUILT_IN, schemeNamed } from '../../../services/hooks/receive/schemes/schemes.ts'
import type { Scheme } from '../../../services/hooks/receive/schemes/scheme.ts'
import { signDelivery } from '../../../services/hooks/receive/schemes/signing.ts'
import { verifySignature } from '../../../services/hooks/receive/schemes/signatures.ts'
import { SIGNED as PROVIDERS, hmac, type Bytes, type Signed } from '../../helpers/hooks.ts'

// At the times of the signatures, so by the pure function; everything else goes through the receivers.
// presets.test.ts has the published vectors of the three providers.

type Case = {
  provider: Signed
  headers: IncomingHttpHeaders
  body?: string | Buffer
  /** Arrival in Unix seconds, with fractions. */
  at?: number
}

const KEY = 'key-of-these-tests'
const AT = 1_700_000_000
const BODY = '{"a":1}'

function scheme(name: string) {
  const found = schemeNamed(name)
  if (found === undefined) throw new Error(`there is no scheme ${name}`)
  return found
}

const STANDARD = scheme('standard')

/** Verifies a body that comes byte by byte; `at` in Unix seconds. */
function verify(
  by: Scheme,
  headers: IncomingHttpHeaders,
  at: number,
  body: string | Buffer,
  keys: Parameters<typeof verifySignature>[2],
) {
  const verifier = verifySignature(by, { headers, receivedAt: new Date(at * 1000) }, keys, 300)
  const bytes = Buffer.from(body)
  for (const byte of bytes) verifier.update(Buffer.of(byte))
  return verifier.finish(bytes)
}

function reasonOf({ provider, headers, body = BODY, at = AT }: Case) {
  const keys = { accepted: [KEY], retired: [] }
  const verification = verify(scheme(BUILT_IN[provider]), headers, at, body, keys)
  return 'secret' in verification ? 'ok' : `${verification.status} ${verification.reason}`
}

const RIGHT = {
  code_host: hmac(KEY, BODY),
  payments: hmac(KEY, `${AT}.`, BODY),
  chat: hmac(KEY, `v0:${AT}:`, BODY),
} as const

const HEADERS: Readonly<Record<Signed, (hex: string) => IncomingHttpHeaders>> = {
  code_host: (hex) => ({ 'x-codehost-signature-256': `sha256=${hex}` }),
  payments: (hex) => ({ 'payments-signature': `t=${AT},v1=${hex}` }),
  chat: (hex) => ({ 'x-chat-signature': `v0=${hex}`, 'x-chat-request-timestamp': String(AT) }),
}

t.test('the signature is over bytes, not over their text', async (t) => {
  for (const provider of PROVIDERS) {
    const body = Buffer.from([0xff, 0xfe])
    const prefix = { code_host: '', payments: `${AT}.`, chat: `v0:${AT}:` }[provider]
    const saidOf = (signed: Bytes) =>
      reasonOf({ provider, headers: HEADERS[provider](hmac(KEY, prefix, signed)), body })
    t.equal(saidOf(body), 'ok', provider)
    t.match(saidOf(body.toString()), /^401 /, `${provider}, decoded`)
  }
})

t.test('the freshness window is inclusive in both directions', async (t) => {
  const cases: readonly (readonly [number, string])[] = [
    [300, 'ok'],
    [300.999, 'ok'],
    [301, '401 stale by 1 s'],
    [-300, 'ok'],
    [-301, '401 1 s ahead of the window'],
  ]
  for (const provider of ['payments', 'chat'] as const) {
    const headers = HEADERS[provider](RIGHT[provider])
    for (const [seconds, said] of cases) {
      t.equal(reasonOf({ provider, headers, at: AT + seconds }), said, `${provider} ${seconds}`)
    }
  }
  const headers = HEADERS.code_host(RIGHT.code_host)
  t.equal(reasonOf({ provider: 'code_host', headers, at: 0 }), 'ok', 'it signs no time')
})

t.test('a signature or a time that is not as its scheme writes it is malformed', async (t) => {
  const malformed = '401 signature malformed'
  for (const provider of PROVIDERS) {
    const right = RIGHT[provider]
    t.equal(reasonOf({ provider, headers: HEADERS[provider](right) }), 'ok', provider)
    const bad = [
      right.toUpperCase(),
      right.slice(1),
      `${right}0`,
      '',
      ` ${right}`,
      `g${right.slice(1)}`,
      `${right}, ${right}`,
    ]
    for (const hex of bad) {
      t.equal(reasonOf({ provider, headers: HEADERS[provider](hex) }), malformed, hex)
    }
  }
  for (const prefix of ['', 'sha1=', 'SHA256=', 'sha256', 'v0=']) {
    const headers = { 'x-codehost-signature-256': prefix + RIGHT.code_host }
    t.equal(reasonOf({ provider: 'code_host', headers }), malformed, prefix)
  }
  for (const prefix of ['', 'v1=', 'V0=', 'sha256=']) {
    const headers = { ...HEADERS.chat(''), 'x-chat-signature': prefix + RIGHT.chat }
    t.equal(reasonOf({ provider: 'chat', headers }), malformed, prefix)
  }
  for (const time of ['', `${AT}abc`, ` ${AT}`, `${AT}.5`, '1'.repeat(13), `${AT}, ${AT}`]) {
    const headers = { ...HEADERS.chat(RIGHT.chat), 'x-chat-request-timestamp': time }
    t.equal(reasonOf({ provider: 'chat', headers }), malformed, `time "${time}"`)
  }
})

t.test('payments: one time of digits, any number of v1, decoys ignored', async (t) => {
  const right = RIGHT.payments
  const wrong = '0'.repeat(64)
  const reason = (signature: string) =>
    reasonOf({ provider: 'payments', headers: { 'payments-signature': signature } })
  const malformed = '401 signature malformed'
  for (const [value, said] of [
    [`t=${AT},v1=${wrong},v1=${right}`, 'ok'],
    [`t=${AT},v1=${right},v1=${wrong}`, 'ok'],
    [`t=${AT},v1=${right},v0=${wrong}`, 'ok'],
    [`t=${AT},v1=xyz,v1=${right}`, 'ok'],
    [`x=1,v1=${right},t=${AT},v2=abc`, 'ok'],
    [`t=${AT},v1=${wrong},v1=${wrong}`, '401 wrong secret or altered body'],
    [`v1=${right}`, malformed],
    [`t=${AT},t=${AT},v1=${right}`, malformed],
    [`t=123abc,v1=${hmac(KEY, '123.', BODY)}`, malformed],
    [`t=,v1=${hmac(KEY, '.', BODY)}`, malformed],
    [`t=-5,v1=${hmac(KEY, '-5.', BODY)}`, malformed],
    [`t=${AT}.5,v1=${hmac(KEY, `${AT}.5.`, BODY)}`, malformed],
    [`t=${AT},v0=${right}`, malformed],
    [`t=${AT},v1=${right}, t=${AT},v1=${right}`, malformed],
    ['', malformed],
  ] as const) {
    t.equal(reason(value), said, value)
  }
})

// Standard Webhooks.

/** The published example. */
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek'
const TIME = 1_614_265_330
const TEXT = '{"test": 2432232314}'
const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='

const OURS = keyOf(SECRET)
const OTHER = keyOf(`whsec_${Buffer.alloc(24, 7).toString('base64')}`)
const SIGNED = {
  'webhook-id': ID,
  'webhook-timestamp': String(TIME),
  'webhook-signature': SIGNATURE,
}

function keyOf(secret: string) {
  const key = signingKey(secret)
  if (key === undefined) throw new Error('no signing secret, expected 24 bytes as base64')
  return key
}

type StandardCase = {
  headers?: Readonly<Record<string, string>>
  body?: string
  accepted?: readonly Buffer[]
  retired?: readonly Buffer[]
}

function standard({ headers, body = TEXT, accepted = [OURS], retired = [] }: StandardCase) {
  return verify(STANDARD, { ...SIGNED, ...headers }, TIME, body, { accepted, retired })
}

const sign = (id: string, body: string, at = TIME) =>
  signDelivery(STANDARD, { id, body: Buffer.from(body) }, OURS, new Date(at * 1000))

function reason(given: StandardCase) {
  const verification = standard(given)
  return 'secret' in verification ? 'ok' : verification.reason
}

t.test('the published vector, and our own signature of it', async (t) => {
  t.same(standard({}), { secret: 'current' })
  const signed = sign(ID, TEXT, TIME + 0.999)
  const svix = Object.fromEntries(
    Object.entries(SIGNED).map(([name, value]) => [name.replace('webhook', 'svix'), value]),
  )
  t.same(signed, { ...SIGNED, ...svix }, 'under the names of Svix, too')
  t.equal(new Webhook(SECRET).sign(ID, new Date(TIME * 1000), TEXT), SIGNATURE)
  const short = makeSigningSecret((size) => Buffer.alloc(size, 1), 'lemon-squeezy')
  t.match(short, /^[\w-]{32,40}$/, 'Lemon Squeezy takes 40 characters at most')
})

t.test('which signatures and keys match, and what is said where none does', async (t) => {
  const wrong = 'wrong secret or altered body'
  const other = 'v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
  const signed = (...parts: string[]) => ({ headers: { 'webhook-signature': parts.join(' ') } })
  const rows: readonly (readonly [StandardCase, string])[] = [
    [signed(other, SIGNATURE), 'ok'],
    // Other schemes beside it.
    [signed('v1a,c29tZQ==', SIGNATURE, 'v2,x'), 'ok'],
    [signed(other, other), wrong],
    [signed('v1a,c29tZQ=='), 'signature malformed'],
    [{ accepted: [] }, wrong],
    [{ body: TEXT.replace('2', '3') }, wrong],
    [{ headers: { 'webhook-id': `${ID}x` } }, wrong],
    [{ headers: { 'webhook-timestamp': String(TIME + 1) } }, wrong],
    // The time is signed as text.
    [{ headers: { 'webhook-timestamp': `0${TIME}` } }, wrong],
    [{ accepted: [OTHER], retired: [OURS] }, 'matches a retired secret'],
    [{ body: `${TEXT}\n` }, 'would match without the trailing newline of the body'],
  ]
  for (const [given, said] of rows) t.equal(reason(given), said, JSON.stringify(given))
  t.same(standard({ accepted: [OTHER, OURS] }), { secret: 'previous' })
  t.same(standard({ accepted: [OURS, OTHER] }), { secret: 'current' })
})

t.test(
  'an id with a full stop is refused: the text could be divided in another way',
  async (t) => {
    // Signed by the sender as id "a", time TIME, body "1614265330.rest"; presented as another delivery.
    const headers = { ...sign('a', `${TIME}.rest`), 'webhook-id': `a.${TIME}` }
    t.equal(reason({ headers, body: 'rest' }), 'signature malformed')
  },
)

t.test('what is malformed is refused as that', async (t) => {
  const bare = SIGNATURE.slice('v1,'.length)
  const malformed: readonly (readonly [keyof typeof SIGNED, string])[] = [
    ['webhook-signature', bare],
    ['webhook-signature', `V1,${bare}`],
    ['webhook-signature', `v1,${bare.slice(0, -1)}`],
    ['webhook-signature', `v1,${bare.replace('+', '-')}`],
    ['webhook-signature', `${SIGNATURE}, ${SIGNATURE}`],
    ['webhook-signature', `${SIGNATURE}  ${SIGNATURE}`],
    ['webhook-id', ''],
    ['webhook-id', 'é'],
    ['webhook-id', 'a, a'],
    ['webhook-timestamp', ''],
    ['webhook-timestamp', `${TIME}.0`],
    ['webhook-timestamp', '1234567890123'],
    ['webhook-timestamp', `${TIME}, ${TIME}`],
  ]
  for (const [name, value] of malformed) {
    t.equal(reason({ headers: { [name]: value } }), 'signature malformed', `${name}: ${value}`)
  }
})

t.test('signing secrets: 24 to 64 bytes as base64, with or without the prefix', async (t) => {
  const base64 = (bytes: number) => Buffer.alloc(bytes, 5).toString('base64')
  for (const bytes of [24, 25, 64]) {
    t.equal(signingKey(`whsec_${base64(bytes)}`)?.length, bytes)
    t.equal(signingKey(base64(bytes))?.length, bytes)
  }
  const unpadded = base64(25).replaceAll('=', '')
  for (const secret of ['', 'whsec_', base64(23), base64(65), `${base64(24)} `, unpadded]) {
    t.equal(signingKey(secret), undefined, `"${secret}"`)
  }
})
