import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { createSecretBox } from '../../kernel/secret-box.ts'
import { backends } from '../helpers/backends.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { addSigned, cardOf, secretKey, sendStandard } from '../helpers/senders-setup.ts'
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
