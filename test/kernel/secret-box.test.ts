import { randomBytes } from 'node:crypto'
import { t } from 'tap'
import { parseSecretKey } from '../../services/hooks/variables.ts'
import { createSecretBox } from '../../kernel/secret-box.ts'

const key = randomBytes(32)
const box = createSecretBox(key, randomBytes)

t.test('what was sealed opens under its name and key only', async (t) => {
  const sealed = box.seal('whsec_ünï', 'generic:a')
  t.same(box.open(sealed, 'generic:a'), { text: 'whsec_ünï' })
  t.same(createSecretBox(key, randomBytes).open(sealed, 'generic:a'), { text: 'whsec_ünï' })
  t.same(box.open(sealed, 'generic:b'), { problem: 'damaged' }, 'another name')
  const other = createSecretBox(randomBytes(32), randomBytes)
  t.same(other.open(sealed, 'generic:a'), { problem: 'sealed with another key' })
})

t.test('the same text is never sealed to the same bytes, and is not in them', async (t) => {
  const text = 'a text that is easy to find'
  const all = Array.from({ length: 50 }, () => box.seal(text, 'n'))
  t.equal(new Set(all.map((sealed) => sealed.toString('hex'))).size, 50)
  t.notOk(all.some((sealed) => sealed.includes(text) || sealed.includes(key)))
})

t.test('one changed, missing or added byte anywhere is noticed', async (t) => {
  const sealed = box.seal('secret', 'n')
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] ?? 0) ^ 1
    t.ok('problem' in box.open(changed, 'n'), `byte ${at}`)
    t.ok('problem' in box.open(sealed.subarray(0, at), 'n'), `the first ${at} bytes`)
  }
  t.same(box.open(Buffer.concat([sealed, Buffer.of(0)]), 'n'), { problem: 'damaged' })
})

t.test('a key is 32 bytes as base64, and a refusal does not quote it', async (t) => {
  t.same(parseSecretKey(key.toString('base64')), key)
  for (const text of ['', key.toString('hex'), `${key.toString('base64')}\n`]) {
    t.throws(() => parseSecretKey(text), { name: 'SyntaxError', message: 'it has another form' })
  }
  for (const size of [31, 33]) {
    t.throws(() => parseSecretKey(randomBytes(size).toString('base64')), `${size} bytes`)
  }
})
