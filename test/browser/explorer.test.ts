import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { makeLink, startLinks } from '../helpers/links-setup.ts'
import { keepSecret } from '../helpers/secrets.ts'
import {
  fitsEachWidth,
  openExplorer,
  samplesWork,
  showsEverything,
  staysAt,
} from './explorer-page.ts'
import { browse } from './pages.ts'

const HREF = (link: { href: string }): string => link.href

await t.test('the explorer of the links API', async (t: Test) => {
  const links = await startLinks(t, backends[1])
  const ben = await links.user('ben', { admin: true })
  const ann = await links.user('ann')
  const explorer = await openExplorer(t, links.base)

  await t.test('shows every operation, and fits each width', (t) => showsEverything(t, explorer))

  await t.test('try it out: without a token it reads the configuration', async (t) => {
    const { status, text } = await explorer.tryOut('getConfig')
    t.equal(status, 200)
    t.match(text, /"short_keyword"/)
  })

  await t.test('with a token, every sample does what it says, as it stands', async (t) => {
    await explorer.authorize(ben.token)
    const [owned, shared] = [await makeLink(ben, 'owned'), await makeLink(ben, 'shared')]
    const tried = await samplesWork(t, explorer, {
      ...{ replaceLink: { id: owned.id }, addOwner: { id: owned.id } },
      ...{ shareLink: { id: shared.id }, setRole: { id: ann.id } },
    })
    const made = JSON.parse(tried.get('createToken')?.text ?? '{}')
    keepSecret('api-token', String(made.token))
    const list = (await ben.api<{ links: readonly object[] }>('GET', '/links')).json.links
    const url = 'https://docs.example.com/handbook'
    t.match(list, [{ slug: 'handbook', url }, { slug: 'owned', url }, { slug: 'shared' }])
  })

  await t.test('open operations fit a narrow window', (t) => fitsEachWidth(t, explorer.page))
  staysAt(t, explorer, links.base)
})

await t.test('calls go where the page is from, whatever the public address is', async (t: Test) => {
  const elsewhere = { LINKS_BASE_URL: 'https://go.example.com' }
  const links = await startLinks(t, backends[1], elsewhere)
  const explorer = await openExplorer(t, links.base)
  const { url, status, text } = await explorer.tryOut('getConfig')
  t.match({ url, status, text }, { url: `${links.base}/api/v1/config`, status: 200 })
  t.match(text, /"short_keyword":"go"/)
})

await t.test('without script the page leads to the description', async (t: Test) => {
  const links = await startLinks(t, backends[1])
  const { page } = await browse(t, links.base, { javaScriptEnabled: false })
  await page.goto(`${links.base}/api/docs/`)
  const link = page.getByRole('link', { name: 'openapi.yaml' })
  t.equal(await link.evaluate(HREF), `${links.base}/api/openapi.yaml`)
})
