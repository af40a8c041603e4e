import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { deliver, refusals, SIGNED, startHooks } from '../helpers/signing-setup.ts'
import type { Hooks, Signed } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

// Secrets come from the configuration: the database changes nothing about them.
const [, postgres] = backends

async function status({ base }: Hooks, provider: Signed, key: string): Promise<number> {
  const body = JSON.stringify({ provider, key: key.length })
  return (await deliver(base, provider, body, {}, { secret: key })).status
}

async function lastReason({ base }: Hooks, provider: Signed, expected: RegExp): Promise<string> {
  const listed = await until(async () => {
    const [newest] = await refusals(base, `&provider=${provider}`)
    return newest !== undefined && expected.test(newest.reason) && newest
  }, `a refusal of ${provider} for ${expected}`)
  return listed.reason
}

t.test('the current and the previous secret verify, side by side', async (t) => {
  const old = {
    code_host: secret('old-code'),
    payments: secret('old-pay'),
    chat: secret('old-chat'),
  }
  const fresh = {
    code_host: secret('new-code'),
    payments: secret('new-pay'),
    chat: secret('new-chat'),
  }
  const hooks = await startHooks(t, postgres, {
    HOOKS_CODE_HOST_SECRET: fresh.code_host,
    HOOKS_CODE_HOST_SECRET_PREVIOUS: old.code_host,
    HOOKS_PAYMENTS_SECRET: fresh.payments,
    HOOKS_PAYMENTS_SECRET_PREVIOUS: old.payments,
    HOOKS_CHAT_SECRET: fresh.chat,
    HOOKS_CHAT_SECRET_PREVIOUS: old.chat,
  })
  for (const provider of SIGNED) {
    t.equal(await status(hooks, provider, fresh[provider]), 202, `${provider}: current`)
    t.equal(await status(hooks, provider, old[provider]), 202, `${provider}: previous`)
    t.equal(await status(hooks, provider, 'neither'), 401, `${provider}: neither`)
    t.equal(await status(hooks, provider, ''), 401, `${provider}: empty`)
  }
  await lastReason(hooks, 'chat', /^wrong secret or altered body$/)
})

t.test('an environment file that changes is followed without a restart', async (t) => {
  const [first, second] = [secret('first'), secret('second')]
  const file = join(await temporaryFolder(t), 'gatehouse.env')
  const env = await postgres.env(t)
  await writeFile(file, `HOOKS_CODE_HOST_SECRET=${first}\n`)
  const server = await startServer(t, {
    services: ['hooks'],
    env: { ...env, GATEHOUSE_ENV_FILE: file },
  })
  const hooks = { server, base: server.hooks, env }
  t.equal(await status(hooks, 'code_host', first), 202)
  t.equal(await status(hooks, 'code_host', second), 401)

  const both = [`HOOKS_CODE_HOST_SECRET=${second}`, `HOOKS_CODE_HOST_SECRET_PREVIOUS=${first}`]
  await writeFile(file, `${both.join('\n')}\n`)
  await until(async () => (await status(hooks, 'code_host', second)) === 202, 'the new secret')
  t.equal(await status(hooks, 'code_host', first), 202, 'the previous one, beside it')

  await writeFile(file, `HOOKS_CODE_HOST_SECRET=${second}\n`)
  await until(async () => (await status(hooks, 'code_host', first)) === 401, 'the old one to end')
  t.equal(await status(hooks, 'code_host', second), 202)
  await lastReason(hooks, 'code_host', /^matches a retired secret$/)

  await writeFile(file, 'HOOKS_CODE_HOST_SECRET\n=broken\nHOOKS_NOTHING=1\n')
  await until(() => server.logs().some((line) => line.includes('not re-read')), 'the complaint')
  t.equal(await status(hooks, 'code_host', second), 202, 'a broken file changes nothing')

  await writeFile(file, '# no provider is configured\n')
  await until(async () => (await status(hooks, 'code_host', second)) === 404, 'no provider')
})

t.test('a previous secret that nobody used yet is known as retired too', async (t) => {
  const [first, second] = [secret('unused'), secret('kept')]
  const file = join(await temporaryFolder(t), 'gatehouse.env')
  const env = await postgres.env(t)
  const both = [`HOOKS_PAYMENTS_SECRET=${second}`, `HOOKS_PAYMENTS_SECRET_PREVIOUS=${first}`]
  await writeFile(file, both.join('\n'))
  const server = await startServer(t, {
    services: ['hooks'],
    env: { ...env, GATEHOUSE_ENV_FILE: file },
  })
  await writeFile(file, `HOOKS_PAYMENTS_SECRET=${second}\n`)
  await until(() => server.logs().some((line) => line.includes('configuration re-read')), 'it')
  const hooks = { server, base: server.hooks, env }
  t.equal(await status(hooks, 'payments', first), 401)
  await lastReason(hooks, 'payments', /^matches a retired secret$/)
})

t.test('the whole value is the secret', async (t) => {
  const spaced = keepSecret('spaced', ` ${secret('in-spaces')} with spaces  `)
  const newline = keepSecret('newline', `${secret('with-newline')}\n`)
  const prefixed = keepSecret('prefixed', `whsec_${secret('after-prefix')}`)
  const hooks = await startHooks(t, postgres, {
    HOOKS_CODE_HOST_SECRET: spaced,
    HOOKS_CHAT_SECRET: newline,
    HOOKS_PAYMENTS_SECRET: prefixed,
  })
  t.equal(await status(hooks, 'code_host', spaced), 202, 'with its spaces')
  t.equal(await status(hooks, 'code_host', spaced.trim()), 401, 'without them')
  t.equal(await status(hooks, 'payments', prefixed), 202, 'with its prefix')
  t.equal(await status(hooks, 'payments', prefixed.slice(6)), 401, 'without it')
  t.equal(await status(hooks, 'chat', newline), 202, 'with its newline')
  t.equal(await status(hooks, 'chat', newline.trimEnd()), 401, 'without it')
  await lastReason(hooks, 'chat', /^would match without the trailing newline of the configured/)
})
