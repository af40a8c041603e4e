import { t } from 'tap'
import { Webhook } from 'standardwebhooks'
import {
  makeSigningSecret,
  signingKey,
  signStandard,
  verifyStandard,
} from '../../services/hooks/standard-webhooks.ts'
import type { Verification } from '../../services/hooks/signed-delivery.ts'
import { dice } from '../helpers/signing-setup.ts'

/** The published example. */
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek'
const TIME = 1_614_265_330
const BODY = '{"test": 2432232314}'
const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='

const KEY = keyOf(SECRET)
const OTHER = keyOf(`whsec_${Buffer.alloc(24, 7).toString('base64')}`)
const HEADERS = {
  'webhook-id': ID,
  'webhook-timestamp': String(TIME),
  'webhook-signature': SIGNATURE,
}

function keyOf(secret: string): Buffer {
  const key = signingKey(secret)
  if (key === undefined) throw new Error('no signing secret, expected 24 bytes as base64')
  return key
}

type Case = {
  headers?: Readonly<Record<string, string>>
  body?: string | Buffer
  /** Unix seconds of arrival. */
  at?: number
  accepted?: readonly Buffer[]
  retired?: readonly Buffer[]
}

function verify(given: Case): Verification {
  const { headers = {}, body = BODY, at = TIME, accepted = [KEY], retired = [] } = given
  const head = { headers: { ...HEADERS, ...headers }, receivedAt: new Date(at * 1000) }
  const bytes = Buffer.from(body)
  const verifier = verifyStandard(head, { accepted, retired }, 300)
  verifier.update(bytes)
  return verifier.finish(bytes)
}

function reasonOf(given: Case): string {
  const verification = verify(given)
  return verification.ok ? 'ok' : verification.reason
}

t.test('the published vector, and our own signature of it', async (t) => {
  t.same(verify({}), { ok: true, secret: 'current' })
  const ours = signStandard(ID, Buffer.from(BODY), KEY, new Date(TIME * 1000 + 999))
  t.same(ours, HEADERS)
  t.equal(new Webhook(SECRET).sign(ID, new Date(TIME * 1000), BODY), SIGNATURE)
  const fresh = makeSigningSecret((size) => Buffer.alloc(size, 1))
  const now = signStandard('x', Buffer.from('{"b":2}'), keyOf(fresh), new Date())
  t.same(new Webhook(fresh).verify('{"b":2}', { ...now }), { b: 2 }, 'its library takes ours')
})

t.test('any of several signatures may match any of several keys', async (t) => {
  const wrong = 'v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
  const joined = (...parts: string[]) => ({ 'webhook-signature': parts.join(' ') })
  t.ok(verify({ headers: joined(wrong, SIGNATURE) }).ok)
  t.ok(verify({ headers: joined(SIGNATURE, wrong) }).ok)
  t.ok(verify({ headers: joined('v1a,c29tZQ==', SIGNATURE, 'v2,x') }).ok, 'other schemes beside')
  t.same(verify({ accepted: [OTHER, KEY] }), { ok: true, secret: 'previous' })
  t.same(verify({ accepted: [KEY, OTHER] }), { ok: true, secret: 'current' })
  t.equal(reasonOf({ headers: joined(wrong, wrong) }), 'wrong secret or altered body')
  t.equal(reasonOf({ headers: joined('v1a,c29tZQ==') }), 'signature malformed', 'no v1 at all')
})

t.test('one changed thing and it does not match', async (t) => {
  const wrong = 'wrong secret or altered body'
  t.equal(reasonOf({ accepted: [OTHER] }), wrong)
  t.equal(reasonOf({ body: BODY.replace('2', '3') }), wrong)
  t.equal(reasonOf({ headers: { 'webhook-id': `${ID}x` } }), wrong)
  t.equal(reasonOf({ headers: { 'webhook-timestamp': String(TIME + 1) } }), wrong)
  t.equal(reasonOf({ headers: { 'webhook-timestamp': `0${TIME}` } }), wrong, 'signed as text')
  t.equal(reasonOf({ accepted: [] }), wrong, 'without any key')
  t.equal(reasonOf({ accepted: [OTHER], retired: [KEY] }), 'matches a retired secret')
  t.equal(reasonOf({ body: `${BODY}\n` }), 'would match without the trailing newline of the body')
})

t.test('the window is inclusive, both ways', async (t) => {
  t.equal(reasonOf({ at: TIME + 300 }), 'ok')
  t.equal(reasonOf({ at: TIME - 300 }), 'ok')
  t.equal(reasonOf({ at: TIME + 301 }), 'stale by 1 s')
  t.equal(reasonOf({ at: TIME - 301 }), '1 s ahead of the window')
})

t.test('an id with a full stop is refused: the text could be divided in another way', async (t) => {
  // Signed by the sender as id "a", time TIME, body "1614265330.rest"; presented as another delivery.
  const signed = signStandard('a', Buffer.from(`${TIME}.rest`), KEY, new Date(TIME * 1000))
  const headers = { ...signed, 'webhook-id': `a.${TIME}` }
  t.equal(reasonOf({ headers, body: 'rest' }), 'signature malformed')
})

t.test('what is missing is named, what is malformed too', async (t) => {
  for (const [name, reason] of Object.entries({
    'webhook-signature': 'signature missing',
    'webhook-id': 'header webhook-id missing',
    'webhook-timestamp': 'header webhook-timestamp missing',
  })) {
    const { [name as keyof typeof HEADERS]: _, ...rest } = HEADERS
    const head = { headers: rest, receivedAt: new Date(TIME * 1000) }
    const verifier = verifyStandard(head, { accepted: [KEY], retired: [] }, 300)
    t.same(verifier.finish(Buffer.from(BODY)), { ok: false, status: 401, reason })
  }
  const bare = SIGNATURE.slice('v1,'.length)
  const malformed: readonly (readonly [keyof typeof HEADERS, string])[] = [
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
    t.equal(reasonOf({ headers: { [name]: value } }), 'signature malformed', `${name}: ${value}`)
  }
})

t.test('garbage is refused and never throws', async (t) => {
  const roll = dice(4711)
  const letters = ['v1', ',', ' ', '=', '.', 'A', '9', '\0', '\u{ff}', '+', 'v1a,', SIGNATURE, '-']
  const text = () => Array.from({ length: roll(12) }, () => letters[roll(letters.length)]).join('')
  for (let n = 0; n < 3_000; n++) {
    const headers = {
      'webhook-id': text(),
      'webhook-timestamp': text(),
      'webhook-signature': text(),
    }
    if (verify({ headers }).ok) t.fail(JSON.stringify(headers))
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
