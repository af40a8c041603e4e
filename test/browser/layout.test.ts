import { t } from 'tap'
import type { Test } from 'tap'
import { identity, linksServer } from '../helpers/links.ts'
import { opsServer } from '../helpers/ops.ts'
import { accessible, fits, measurable, measure, worksByKeyboard } from './measure.ts'
import { browse, loadFailure } from './pages.ts'
import { fillAdmin, fillLinks, fillLong, fillOps, fillOrdinary, startSites } from './sites.ts'
import type { Paths } from './sites.ts'

const { server, env } = await startSites(t)

/** Looks at one page of each kind on a desktop and on a phone; test/long has all pages and sizes. */
async function look(t: Test, base: string, paths: Paths, email = ''): Promise<void> {
  const { page, context } = await browse(t, base, {
    extraHTTPHeaders: identity(email),
    expectedErrors: [404, 410].map(loadFailure),
  })
  await measurable(context)
  for (const path of paths) {
    await t.test(path.slice(0, 40), async (t) => {
      await page.goto(base + path)
      t.same(await measure(page, 'structure()'), [])
      await measure(page, 'openDetails()')
      await accessible(t, page)
      await fits(t, page, 1280, ['light'])
      await fits(t, page, 390, ['dark'])
    })
  }
  await t.test('the last of them by keyboard', (t) => worksByKeyboard(t, page))
}

await t.test('hooks', async (t: Test) => {
  const { hooks } = server
  await fillOrdinary(hooks)
  const long = await fillLong(hooks)
  await look(t, hooks, [...long, '/log?rejected=1'])
})

await t.test('links', async (t: Test) => {
  const links = linksServer(server, env)
  const own = await fillLinks(links)
  await t.test('of a user', (t) => look(t, links.base, own.kinds, own.email))
  const admin = await fillAdmin(links)
  await t.test('of an admin', (t) => look(t, links.base, admin.kinds, admin.email))
})

await t.test('ops', async (t: Test) => {
  const { kinds } = await fillOps(opsServer(server, env))
  await look(t, server.ops, kinds)
})
