import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { createSecretBox } from '../../kernel/secret-box.ts'
import { mayDeliver } from '../../services/hooks/sender-keys.ts'
import { backends } from '../helpers/backends.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import {
  addSigned,
  cardOf,
  secretKey,
  sendStandard,
  signingSecret,
} from '../helpers/senders-setup.ts'
import { startServer } from '../helpers/server.ts'
import { postForm, startHooks } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

// Whether a secret is there decides what is shown and what may deliver: both at once, and alike.

const [, postgres] = backends

t.test('a key that changes counts for the card and for the receiver at once', async (t: Test) => {
  const file = join(await temporaryFolder(t), 'gatehouse.env')
  const [right, wrong] = [secretKey(), secretKey()]
  await writeFile(file, `GATEHOUSE_SECRET_KEY=${right}\n`)
  const env = await postgres.env(t)
  const server = await startServer(t, {
    services: ['hooks'],
    env: { ...env, GATEHOUSE_ENV_FILE: file },
  })
  const base = server.hooks
  const signing = await addSigned(base, 'shop')
  t.equal((await sendStandard(base, 'shop', signing)).status, 202)

  let read = 0
  for (const [key, secret, status] of [
    [wrong, 'missing', 403],
    [right, 'configured', 202],
  ] as const) {
    await writeFile(file, `GATEHOUSE_SECRET_KEY=${key}\n`)
    read++
    const lines = (): number => server.logs().filter((line) => line.includes('re-read')).length
    await until(() => lines() === read, 'the file to be read')
    t.equal((await sendStandard(base, 'shop', signing)).status, status)
    t.match(await cardOf(base, 'generic:shop'), { Secret: secret })
  }
})

t.test('a stored secret is decrypted once, however often its row is read', async (t: Test) => {
  const name = 'generic:counted'
  const box = createSecretBox(randomBytes(32), randomBytes)
  const text = signingSecret()
  let opened = 0
  const counting = {
    seal: box.seal,
    open(bytes: Buffer, of: string) {
      opened++
      return box.open(bytes, of)
    },
  }
  const secrets = { of: () => undefined, box: () => counting }
  const row = { name, trust_mode: 'signed' as const, token_hash: null, enabled: true }
  const mayDeliverWith = (sealed: Buffer): boolean =>
    mayDeliver({ ...row, signing_secret: Buffer.from(sealed) }, secrets)
  const sealed = box.seal(text, name)
  for (let n = 0; n < 3; n++) t.ok(mayDeliverWith(sealed))
  t.equal(opened, 1)
  t.notOk(mayDeliverWith(box.seal('too short', name)), 'another secret is looked at')
  t.ok(mayDeliverWith(box.seal(text, name)))
  t.equal(opened, 3)
})

t.test('a text that is no signing secret is none', async (t: Test) => {
  const key = secretKey()
  const { base, env } = await startHooks(t, postgres, { GATEHOUSE_SECRET_KEY: key })
  const signing = await addSigned(base, 'shop')
  const box = createSecretBox(Buffer.from(key, 'base64'), randomBytes)
  const sealed = box.seal('too short', 'generic:shop')
  const change = `update hooks.providers set signing_secret = $1 where name = 'generic:shop'`
  await postgres.query(env, change, [sealed])
  // Any change of a provider has them all read again.
  await postForm(base, '/providers', { name: 'other', trust_mode: 'token' })
  t.equal((await sendStandard(base, 'shop', signing)).status, 403)
  t.match(await cardOf(base, 'generic:shop'), { Secret: 'missing', switch: 'off' })
})
