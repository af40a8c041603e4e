import { t } from 'tap'
import type { Test } from 'tap'
import { CHAT_KEY, startBriefs } from '../helpers/alerts.ts'
import { apiOf } from '../helpers/api.ts'
import { backends } from '../helpers/backends.ts'
import { linksServer, makeLink } from '../helpers/links.ts'
import { ended, inventoryFile } from '../helpers/ops.ts'
import type { Memory, Session } from '../helpers/ops.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { fitsWidths, openExplorer, samplesWork } from '../browser/explorer-page.ts'

const [, postgres] = backends
const env = {
  ...(await postgres.env(t)),
  OPS_INVENTORY: await inventoryFile(t, { services: [] }),
  OPS_CHAT_API_KEY: CHAT_KEY,
  ...(await startBriefs(t)).env,
}
const server = await startServer(t, { services: ['links', 'ops'], env })

await t.test('all samples of the links API', async (t: Test) => {
  const links = linksServer(server, env)
  const ben = await links.user('ben', { admin: true })
  const ann = await links.user('ann')
  const explorer = await openExplorer(t, links.base)

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

  await fitsWidths(t, explorer.page, [1280, 390, 320])
})

await t.test('all samples of the ops API', async (t: Test) => {
  const ops = { base: server.ops, api: apiOf(server.ops) }
  await ended(ops)
  const explorer = await openExplorer(t, ops.base)

  await t.test('every sample does what it says, as it stands', async (t) => {
    await explorer.authorize(CHAT_KEY)
    const made = await ops.api<Memory>('POST', '/memories', { category: 'c', observation: 'o' })
    await samplesWork(t, explorer, { updateMemory: { id: String(made.json.id) } })
    const { memories } = (await ops.api<{ memories: readonly Memory[] }>('GET', '/memories')).json
    const observation = 'slow for ten minutes after the backup at 03:00'
    t.match(memories, [{ observation }, { observation }])
    t.match(memories.map(({ category }) => category).toSorted(), ['c', 'timing'])
    t.match((await ops.api('GET', '/config')).json, { interval: 1_800, dry_run: false })
    await ended(ops)
    const { sessions } = (await ops.api<{ sessions: readonly Session[] }>('GET', '/sessions')).json
    const asked = sessions.find(({ trigger }) => trigger === 'api')
    t.match(asked, { tier: 1, prompt_text: /^The shop has been slow/ })
  })

  await fitsWidths(t, explorer.page, [1280, 390, 320])
})
