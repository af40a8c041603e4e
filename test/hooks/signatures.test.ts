import type { IncomingHttpHeaders } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { t } from 'tap'
import { makeSigningSecret, signingKey } from '../../services/hooks/schemes/keys.ts'
import { BUILT_IN, schemeNamed } from '../../services/hooks/schemes/schemes.ts'
import type { Scheme } from '../../services/hooks/schemes/scheme.ts'
import { signDelivery } from '../../services/hooks/schemes/signing.ts'
import { verifySignature, type Verification } from '../../services/hooks/schemes/signatures.ts'
import { dice, hmac, type Signed } from '../helpers/hooks.ts'
import { VECTORS } from '../fixtures/signing-vectors.ts'

// The published vectors bear times long past, so they are verified at their own time, by the pure
// function; everything else goes through the receivers.

type Case = {
  provider: Signed
  headers: IncomingHttpHeaders
  body?: string | Buffer
  /** Arrival in Unix seconds, with fractions. */
  at?: number
  accepted?: readonly string[]
}

const KEY = 'key-of-these-tests'
const AT = 1_700_000_000
const BODY = '{"a":1}'

function scheme(name: string): Scheme {
  const found = schemeNamed(name)
  if (found === undefined) throw new Error(`there is no scheme ${name}`)
  return found
}

const STANDARD = scheme('standard')

function verify({
  provider,
  headers,
  body = BODY,
  at = AT,
  accepted = [KEY],
}: Case): Verification {
  const head = { headers, receivedAt: new Date(at * 1000) }
  const bytes = Buffer.from(body)
  const verifier = verifySignature(
    scheme(BUILT_IN[provider]),
    head,
    { accepted, retired: [] },
    300,
  )
  for (const byte of bytes) verifier.update(Buffer.of(byte))
  return verifier.finish(bytes)
}

function reasonOf(given: Case): string {
  const verification = verify(given)
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

const PROVIDERS = ['code_host', 'payments', 'chat'] as const

t.test('the published vectors verify, and nothing beside them', async (t) => {
  for (const { name, provider, secret, body, at, headers } of VECTORS) {
    const given = { provider, headers, body, at, accepted: [secret] }
    t.same(verify(given), { secret: 'current' }, name)
    const wrong = '401 wrong secret or altered body'
    t.equal(reasonOf({ ...given, accepted: [`${secret}x`] }), wrong, `${name}, other secret`)
    t.equal(reasonOf({ ...given, body: `${body} ` }), wrong, `${name}, other body`)
  }
})

t.test('the signature is over bytes, not over their text', async (t) => {
  for (const provider of PROVIDERS) {
    const body = Buffer.from([0xff, 0xfe])
    const prefix = { code_host: '', payments: `${AT}.`, chat: `v0:${AT}:` }[provider]
    const bytes = HEADERS[provider](hmac(KEY, prefix, body))
    const text = HEADERS[provider](hmac(KEY, prefix, body.toString('utf8')))
    t.equal(reasonOf({ provider, headers: bytes, body }), 'ok', provider)
    t.match(reasonOf({ provider, headers: text, body }), /^401 /, `${provider}, decoded`)
  }
})

t.test('the freshness window is inclusive in both directions', async (t) => {
  for (const provider of ['payments', 'chat'] as const) {
    const given = { provider, headers: HEADERS[provider](RIGHT[provider]) }
    t.equal(reasonOf({ ...given, at: AT + 300 }), 'ok', `${provider}, 300 s old`)
    t.equal(reasonOf({ ...given, at: AT + 300.999 }), 'ok', `${provider}, within that second`)
    t.equal(reasonOf({ ...given, at: AT + 301 }), '401 stale by 1 s', provider)
    t.equal(reasonOf({ ...given, at: AT + 4_000 }), '401 stale by 3700 s', provider)
    t.equal(reasonOf({ ...given, at: AT - 300 }), 'ok', `${provider}, 300 s ahead`)
    t.equal(reasonOf({ ...given, at: AT - 301 }), '401 1 s ahead of the window', provider)
  }
  t.equal(
    reasonOf({ provider: 'code_host', headers: HEADERS.code_host(RIGHT.code_host), at: 0 }),
    'ok',
  )
})

t.test('a signature that is not 64 lower-case hex digits is malformed', async (t) => {
  for (const provider of PROVIDERS) {
    const right = RIGHT[provider]
    t.equal(reasonOf({ provider, headers: HEADERS[provider](right) }), 'ok', provider)
    const bad = {
      'upper-case hex': right.toUpperCase(),
      '63 digits': right.slice(1),
      '65 digits': `${right}0`,
      'no digits': '',
      'a space behind': `${right} `,
      'a space in front': ` ${right}`,
      'a digit that is none': `g${right.slice(1)}`,
      'two values joined': `${right}, ${right}`,
    }
    for (const [name, hex] of Object.entries(bad)) {
      const reason = reasonOf({ provider, headers: HEADERS[provider](hex) })
      t.equal(reason, '401 signature malformed', `${provider}: ${name}`)
    }
    t.equal(
      reasonOf({ provider, headers: HEADERS[provider]('0'.repeat(64)) }),
      '401 wrong secret or altered body',
      `${provider}: zeroes`,
    )
  }
})

t.test('code_host and chat: another prefix, or none, is malformed', async (t) => {
  for (const prefix of ['', 'sha1=', 'SHA256=', 'sha256:', 'sha256', 'v0=', 'sha256==']) {
    const headers = { 'x-codehost-signature-256': prefix + RIGHT.code_host }
    t.equal(reasonOf({ provider: 'code_host', headers }), '401 signature malformed', prefix)
  }
  for (const prefix of ['', 'v1=', 'V0=', 'v0:', 'sha256=']) {
    const headers = { ...HEADERS.chat(''), 'x-chat-signature': prefix + RIGHT.chat }
    t.equal(reasonOf({ provider: 'chat', headers }), '401 signature malformed', prefix)
  }
  for (const time of [
    '',
    `${AT}abc`,
    ` ${AT}`,
    `${AT}.5`,
    `-${AT}`,
    '1'.repeat(13),
    `${AT}, ${AT}`,
  ]) {
    const headers = { ...HEADERS.chat(RIGHT.chat), 'x-chat-request-timestamp': time }
    t.equal(reasonOf({ provider: 'chat', headers }), '401 signature malformed', `time "${time}"`)
  }
})

t.test('payments: one time of digits, any number of v1, decoys ignored', async (t) => {
  const right = RIGHT.payments
  const wrong = '0'.repeat(64)
  const reason = (value: string): string =>
    reasonOf({ provider: 'payments', headers: { 'payments-signature': value } })
  const good = {
    'the right one last': `t=${AT},v1=${wrong},v1=${right}`,
    'the right one first': `t=${AT},v1=${right},v1=${wrong}`,
    'a decoy beside it': `t=${AT},v1=${right},v0=${wrong}`,
    'a malformed one beside it': `t=${AT},v1=xyz,v1=${right}`,
    'an unknown scheme': `x=1,t=${AT},v1=${right},v2=abc`,
    'the time behind': `v1=${right},t=${AT}`,
  }
  for (const [name, value] of Object.entries(good)) t.equal(reason(value), 'ok', name)
  const malformed = {
    'no time': `v1=${right}`,
    'two times': `t=${AT},t=${AT},v1=${right}`,
    'letters behind the time': `t=123abc,v1=${hmac(KEY, '123.', BODY)}`,
    'an empty time': `t=,v1=${hmac(KEY, '.', BODY)}`,
    'a negative time': `t=-5,v1=${hmac(KEY, '-5.', BODY)}`,
    'a fraction': `t=${AT}.5,v1=${hmac(KEY, `${AT}.5.`, BODY)}`,
    '13 digits': `t=${'1'.repeat(13)},v1=${right}`,
    'v0 only': `t=${AT},v0=${right}`,
    'no signature': `t=${AT}`,
    'the header twice': `t=${AT},v1=${right}, t=${AT},v1=${right}`,
    'a space between': `t=${AT}, v1=${right}`,
    'nothing at all': '',
  }
  for (const [name, value] of Object.entries(malformed)) {
    t.equal(reason(value), '401 signature malformed', name)
  }
  t.equal(
    reason(`t=${AT},v1=${wrong},v1=${wrong}`),
    '401 wrong secret or altered body',
    'all wrong',
  )
})

t.test('chat: a missing time is 400, and said before a missing signature', async (t) => {
  const { 'x-chat-signature': signature, 'x-chat-request-timestamp': time } = HEADERS.chat(
    RIGHT.chat,
  )
  const reason = (headers: IncomingHttpHeaders): string => reasonOf({ provider: 'chat', headers })
  t.equal(reason({}), '400 timestamp header missing')
  t.equal(reason({ 'x-chat-signature': signature }), '400 timestamp header missing')
  t.equal(reason({ 'x-chat-request-timestamp': time }), '401 signature missing')
  for (const provider of ['code_host', 'payments'] as const) {
    t.equal(reasonOf({ provider, headers: {} }), '401 signature missing', provider)
  }
})

t.test('every accepted secret counts, every other one does not', async (t) => {
  for (const provider of PROVIDERS) {
    const headers = HEADERS[provider](RIGHT[provider])
    t.equal(reasonOf({ provider, headers, accepted: ['new', KEY] }), 'ok', `${provider}: second`)
    t.equal(reasonOf({ provider, headers, accepted: [KEY, 'old'] }), 'ok', `${provider}: first`)
    t.match(
      reasonOf({ provider, headers, accepted: ['new', 'old'] }),
      /^401 /,
      `${provider}: none`,
    )
  }
})

t.test('no random header verifies, and none throws', async (t) => {
  const roll = dice(20_261)
  const parts = [
    't=',
    'v1=',
    'v0=',
    'sha256=',
    ',',
    ', ',
    '=',
    String(AT),
    ...Object.values(RIGHT),
  ]
  const junk = [...parts.map((part) => part.slice(0, 40)), '\u00e9', '\ufffd', ' ', '\t', '\0']
  let tried = 0
  for (let i = 0; i < 1_000; i++) {
    const text = Array.from({ length: roll(7) }, () => junk[roll(junk.length)] ?? '').join('')
    for (const provider of PROVIDERS) {
      const all = HEADERS[provider]('')
      const names = Object.keys(all)
      const headers = { ...all, [names[roll(names.length)] ?? '']: text }
      const verification = verify({ provider, headers })
      if ('secret' in verification) t.fail(`${provider} takes ${JSON.stringify(headers)}`)
      else if (![400, 401].includes(verification.status)) t.fail(`status of ${text}`)
      tried += 1
    }
  }
  t.equal(tried, 3_000)
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

function keyOf(secret: string): Buffer {
  const key = signingKey(secret)
  if (key === undefined) throw new Error('no signing secret, expected 24 bytes as base64')
  return key
}

type StandardCase = {
  headers?: Readonly<Record<string, string>>
  body?: string | Buffer
  /** Unix seconds of arrival. */
  at?: number
  accepted?: readonly Buffer[]
  retired?: readonly Buffer[]
}

function standard(given: StandardCase): Verification {
  const { headers = {}, body = TEXT, at = TIME, accepted = [OURS], retired = [] } = given
  const head = { headers: { ...SIGNED, ...headers }, receivedAt: new Date(at * 1000) }
  const bytes = Buffer.from(body)
  const verifier = verifySignature(STANDARD, head, { accepted, retired }, 300)
  verifier.update(bytes)
  return verifier.finish(bytes)
}

function reason(given: StandardCase): string {
  const verification = standard(given)
  return 'secret' in verification ? 'ok' : verification.reason
}

t.test('the published vector, and our own signature of it', async (t) => {
  t.same(standard({}), { secret: 'current' })
  const signed = signDelivery(
    STANDARD,
    { id: ID, body: Buffer.from(TEXT) },
    OURS,
    new Date(TIME * 1000 + 999),
  )
  const svix = Object.fromEntries(
    Object.entries(SIGNED).map(([name, value]) => [name.replace('webhook', 'svix'), value]),
  )
  t.same(signed, { ...SIGNED, ...svix }, 'under the names of Svix, too')
  t.equal(new Webhook(SECRET).sign(ID, new Date(TIME * 1000), TEXT), SIGNATURE)
  const fresh = makeSigningSecret((size) => Buffer.alloc(size, 1), 'standard')
  const now = signDelivery(
    STANDARD,
    { id: 'x', body: Buffer.from('{"b":2}') },
    keyOf(fresh),
    new Date(),
  )
  t.same(new Webhook(fresh).verify('{"b":2}', { ...now }), { b: 2 }, 'its library takes ours')
  const short = makeSigningSecret((size) => Buffer.alloc(size, 1), 'lemon-squeezy')
  t.match(short, /^[\w-]{32,40}$/, 'Lemon Squeezy takes 40 characters at most')
})

t.test('any of several signatures may match any of several keys', async (t) => {
  const wrong = 'v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
  const joined = (...parts: string[]) => ({ 'webhook-signature': parts.join(' ') })
  t.ok('secret' in standard({ headers: joined(wrong, SIGNATURE) }))
  t.ok('secret' in standard({ headers: joined(SIGNATURE, wrong) }))
  t.ok(
    'secret' in standard({ headers: joined('v1a,c29tZQ==', SIGNATURE, 'v2,x') }),
    'other schemes beside',
  )
  t.same(standard({ accepted: [OTHER, OURS] }), { secret: 'previous' })
  t.same(standard({ accepted: [OURS, OTHER] }), { secret: 'current' })
  t.equal(reason({ headers: joined(wrong, wrong) }), 'wrong secret or altered body')
  t.equal(reason({ headers: joined('v1a,c29tZQ==') }), 'signature malformed', 'no v1 at all')
})

t.test('one changed thing and it does not match', async (t) => {
  const wrong = 'wrong secret or altered body'
  t.equal(reason({ accepted: [OTHER] }), wrong)
  t.equal(reason({ body: TEXT.replace('2', '3') }), wrong)
  t.equal(reason({ headers: { 'webhook-id': `${ID}x` } }), wrong)
  t.equal(reason({ headers: { 'webhook-timestamp': String(TIME + 1) } }), wrong)
  t.equal(reason({ headers: { 'webhook-timestamp': `0${TIME}` } }), wrong, 'signed as text')
  t.equal(reason({ accepted: [] }), wrong, 'without any key')
  t.equal(reason({ accepted: [OTHER], retired: [OURS] }), 'matches a retired secret')
  t.equal(reason({ body: `${TEXT}\n` }), 'would match without the trailing newline of the body')
})

t.test(
  'an id with a full stop is refused: the text could be divided in another way',
  async (t) => {
    // Signed by the sender as id "a", time TIME, body "1614265330.rest"; presented as another delivery.
    const signed = signDelivery(
      STANDARD,
      { id: 'a', body: Buffer.from(`${TIME}.rest`) },
      OURS,
      new Date(TIME * 1000),
    )
    const headers = { ...signed, 'webhook-id': `a.${TIME}` }
    t.equal(reason({ headers, body: 'rest' }), 'signature malformed')
  },
)

t.test('what is missing is named, what is malformed too', async (t) => {
  for (const [name, expected] of Object.entries({
    'webhook-signature': 'signature missing',
    'webhook-id': 'header webhook-id missing',
    'webhook-timestamp': 'header webhook-timestamp missing',
  })) {
    const { [name as keyof typeof SIGNED]: _, ...rest } = SIGNED
    const head = { headers: rest, receivedAt: new Date(TIME * 1000) }
    const verifier = verifySignature(STANDARD, head, { accepted: [OURS], retired: [] }, 300)
    t.same(verifier.finish(Buffer.from(TEXT)), { status: 401, reason: expected })
  }
  const bare = SIGNATURE.slice('v1,'.length)
  const malformed: readonly (readonly [keyof typeof SIGNED, string])[] = [
    ['webhook-signature', ''],
    ['webhook-signature', ' '],
    ['webhook-signature', bare],
    ['webhook-signature', `V1,${bare}`],
    ['webhook-signature', `v1=${bare}`],
    ['webhook-signature', `v1,${bare.slice(0, -1)}`],
    ['webhook-signature', `v1,${bare}=`],
    ['webhook-signature', `v1,${bare.replace('+', '-')}`],
    ['webhook-signature', `${SIGNATURE}, ${SIGNATURE}`],
    ['webhook-signature', `${SIGNATURE},`],
    ['webhook-signature', `${SIGNATURE}  ${SIGNATURE}`],
    ['webhook-id', ''],
    ['webhook-id', 'a b'],
    ['webhook-id', 'é'],
    ['webhook-id', 'a, a'],
    ['webhook-timestamp', ''],
    ['webhook-timestamp', '-1'],
    ['webhook-timestamp', `${TIME}.0`],
    ['webhook-timestamp', ` ${TIME}`],
    ['webhook-timestamp', '1e9'],
    ['webhook-timestamp', '1234567890123'],
    ['webhook-timestamp', `${TIME}, ${TIME}`],
  ]
  for (const [name, value] of malformed) {
    t.equal(reason({ headers: { [name]: value } }), 'signature malformed', `${name}: ${value}`)
  }
})

t.test('garbage is refused and never throws', async (t) => {
  const roll = dice(4711)
  const letters = ['v1', ',', ' ', '=', '.', 'A', '9', '\0', '\u{ff}', '+', 'v1a,', SIGNATURE, '-']
  const text = () => Array.from({ length: roll(12) }, () => letters[roll(letters.length)]).join('')
  for (let n = 0; n < 1_000; n++) {
    const headers = {
      'webhook-id': text(),
      'webhook-timestamp': text(),
      'webhook-signature': text(),
    }
    if ('secret' in standard({ headers })) t.fail(JSON.stringify(headers))
  }
})

t.test('signing secrets: 24 to 64 bytes as base64, with or without the prefix', async (t) => {
  const base64 = (bytes: number) => Buffer.alloc(bytes, 5).toString('base64')
  for (const bytes of [24, 25, 26, 32, 64]) {
    t.equal(signingKey(`whsec_${base64(bytes)}`)?.length, bytes)
    t.equal(signingKey(base64(bytes))?.length, bytes)
  }
  const unpadded = base64(25).replaceAll('=', '')
  for (const secret of [
    '',
    'whsec_',
    base64(23),
    base64(65),
    `${base64(24)} `,
    unpadded,
    'whpk_x',
  ]) {
    t.equal(signingKey(secret), undefined, `"${secret}"`)
  }
})
