import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import {
  HTMX,
  identity,
  leadsTo,
  makeLink,
  pageUser,
  startLinks,
  startPages,
  suggested,
  visit,
} from '../helpers/links.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends

await onPostgres(
  t,
  'dashes and dots do not matter where no link has the name',
  async (t: Test, backend) => {
    const links = await startLinks(t, backend)
    const { base } = links
    const ann = await links.user('ann')
    const link = await makeLink(ann, 'foo-bar', { url: 'https://one.test/a', append_path: true })
    const spellings = [
      'foobar',
      'foo.bar',
      'f-oobar',
      'FOO..BAR',
      'foo_bar',
      'foo-b.ar.',
      'foo.bar/',
    ]
    for (const spelling of spellings) {
      t.equal(await leadsTo(base, `/${spelling}`), 'https://one.test/a', spelling)
    }
    t.equal(await leadsTo(base, '/foo.bar/b?c=1'), 'https://one.test/a/b?c=1', 'with a path')
    t.match((await visit(base, '/foo.bar+')).text, 'https://one.test/a', 'a preview')
    const search = await visit(base, '/-/go?q=foo.bar/b')
    t.match(search, { status: 302, headers: { location: '/foo.bar/b' } })

    const exact = await makeLink(ann, 'foobar', { url: 'https://two.test/' })
    t.equal(await leadsTo(base, '/foobar'), 'https://two.test/', 'an exact name wins')
    t.equal(await leadsTo(base, '/foo.bar'), 'https://one.test/a', 'a dot is a dash first')
    for (const spelling of ['f-oobar', 'f.oobar', 'foo--bar']) {
      const several = await visit(base, `/${spelling}`)
      t.equal(several.status, 404, `${spelling} may mean either`)
      t.same(suggested(several).slice(0, 2), ['foobar', 'foo-bar'], 'they are offered')
    }
    const json = await visit(base, '/f-oobar', { headers: { accept: 'application/json' } })
    t.same(JSON.parse(json.text), { error: 'link not found', code: 'NOT_FOUND' })

    await ann.api('PUT', `/links/${link.id}`, { url: 'https://one.test/new' })
    await ann.api('DELETE', `/links/${exact.id}`)
    for (const spelling of spellings) {
      t.equal(await leadsTo(base, `/${spelling}`), 'https://one.test/new', `${spelling}, changed`)
    }
    await ann.api('DELETE', `/links/${link.id}`)
    for (const spelling of spellings) {
      t.equal(await leadsTo(base, `/${spelling}`), 404, `${spelling}, deleted`)
    }
  },
)

await t.test('a link that a visitor may not find is not found by another spelling', async (t) => {
  const links = await startPages(t, postgres)
  const { base } = links
  const [ann, bob, cyd] = [
    await pageUser(links, 'ann'),
    await pageUser(links, 'bob'),
    await pageUser(links, 'cyd'),
  ]
  const root = await pageUser(links, 'root', { admin: true })
  const as = (who: { email: string }) => ({ headers: identity(who.email) })
  const nobody = { email: '' }
  const table = [
    { slug: 'pub-lic', visibility: 'public', finds: [nobody, ann, bob, cyd, root], not: [] },
    { slug: 'pri-vate', visibility: 'private', finds: [ann, bob, root], not: [nobody, cyd] },
    { slug: 'se-cure', visibility: 'secure', finds: [ann, bob, root], not: [nobody, cyd] },
  ]
  for (const { slug, visibility, finds, not } of table) {
    const { id, url } = await makeLink(ann, slug, { visibility })
    await ann.api('POST', `/links/${id}/shares`, { email: bob.email })
    const path = `/${slug.replace('-', '')}`
    for (const who of finds)
      t.equal(await leadsTo(base, path, as(who)), url, `${who.email} ${slug}`)
    for (const who of not) {
      const unknown = await visit(base, path, as(who))
      t.equal(unknown.status, 404, `${who.email} ${slug}`)
      const other = await visit(base, '/nothing', as(who))
      const plain = (text: string) => text.replaceAll(path.slice(1), 'nothing')
      t.equal(plain(unknown.text), other.text, 'the same page as for any other name')
    }
  }

  // A hidden link beside a public one changes nothing for those who may not find it.
  const open = await makeLink(bob, 'team-docs', { url: 'https://open.test/' })
  await makeLink(ann, 'te-amdocs', { url: 'https://hidden.test/', visibility: 'private' })
  for (const who of [nobody, bob, cyd]) {
    t.equal(await leadsTo(base, '/teamdocs', as(who)), open.url, `${who.email}: the public one`)
  }
  for (const who of [ann, root]) {
    const several = await visit(base, '/teamdocs', as(who))
    t.equal(several.status, 404, `${who.email} may mean both`)
    t.same(suggested(several), ['te-amdocs', 'team-docs'])
  }
  t.equal(
    await leadsTo(base, '/te-amdocs'),
    'https://hidden.test/',
    'who knows the name may follow',
  )

  const note = async (who: typeof ann, slug: string) =>
    (await who.get(`/-/slug?slug=${slug}`, HTMX)).text
  t.match(await note(cyd, 'teamdocs'), /teamdocs is free\. \S+\/team-docs exists, too\./)
  t.match(await note(ann, 'private'), /private is free\. \S+\/pri-vate exists, too\./)
  t.notMatch(await note(cyd, 'private'), 'exists')
  t.equal((await makeLink(cyd, 'teamdocs')).slug, 'teamdocs', 'and may be created')
})

await t.test('another spelling on two servers', async (t) => {
  const one = await startLinks(t, postgres)
  const two = await startLinks(t, postgres, one.env)
  const ann = await one.user('ann')
  const whenLeads = (path: string, to: string | number) =>
    until(async () => (await leadsTo(two.base, path)) === to, `${path} to lead to ${to}`)

  t.equal(await leadsTo(two.base, '/far-off'), 404)
  const link = await makeLink(ann, 'far.off'.replace('.', ''), { url: 'https://v0.test/' })
  await whenLeads('/far-off', 'https://v0.test/')
  await ann.api('PUT', `/links/${link.id}`, { url: 'https://v1.test/' })
  await whenLeads('/far-off', 'https://v1.test/')
  const second = await makeLink(ann, 'fa-roff', { url: 'https://second.test/' })
  await whenLeads('/far-off', 404)
  await ann.api('DELETE', `/links/${second.id}`)
  await whenLeads('/far-off', 'https://v1.test/')
  await ann.api('DELETE', `/links/${link.id}`)
  await whenLeads('/far-off', 404)
})

await t.test('many names that differ in dashes only keep nobody from the right one', async (t) => {
  const links = await startLinks(t, postgres)
  const ann = await links.user('ann')
  const names = Array.from({ length: 30 }, (_, at) => `cr${'-'.repeat(at)}owd`)
  for (const slug of names) await makeLink(ann, slug)
  for (const slug of names) {
    t.equal(await leadsTo(links.base, `/${slug}`), `https://${slug}.test/`, slug)
  }
  t.equal(await leadsTo(links.base, '/c-rowd'), 404, 'several')
})

await t.test('files that browsers ask for are no missing links', async (t) => {
  const links = await startLinks(t, postgres)
  const root = await links.user('root', { admin: true })
  const asked = async () =>
    (await root.api<{ missing_slugs: { slug: string }[] }>('GET', '/admin/missing-slugs')).json
      .missing_slugs
  for (const path of ['/favicon.ico', '/index.php', '/no-such-link.']) {
    t.equal(await leadsTo(links.base, path), 404)
  }
  await until(async () => (await asked()).length > 0, 'the missing slug', 15_000)
  t.match(await asked(), [{ slug: 'no-such-link' }])
})
