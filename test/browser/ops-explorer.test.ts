import { t } from 'tap'
import type { Test } from 'tap'
import { CHAT_KEY, startBriefs } from '../helpers/alerts-setup.ts'
import { backends } from '../helpers/backends.ts'
import { ended, startOps } from '../helpers/ops-setup.ts'
import type { Memory, Session } from '../helpers/ops-setup.ts'
import {
  fitsEachWidth,
  openExplorer,
  samplesWork,
  showsEverything,
  staysAt,
} from './explorer-page.ts'

await t.test('the explorer of the ops API', async (t: Test) => {
  const briefs = await startBriefs(t)
  const ops = await startOps(t, backends[1], { OPS_CHAT_API_KEY: CHAT_KEY, ...briefs.env })
  await ended(ops)
  const explorer = await openExplorer(t, ops.base)

  await t.test('shows every operation, and fits each width', (t) => showsEverything(t, explorer))

  await t.test('try it out: it reads', async (t) => {
    const health = await explorer.tryOut('getHealth')
    t.match(health, { status: 200, text: '{"status":"ok"}', url: `${ops.base}/api/v1/health` })
    const { status, text } = await explorer.tryOut('listSessions', { params: { limit: '1' } })
    t.equal(status, 200)
    t.match(JSON.parse(text), { sessions: [{ trigger: 'scheduled', status: 'completed' }] })
  })

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

  await t.test('open operations fit a narrow window', (t) => fitsEachWidth(t, explorer.page))
  staysAt(t, explorer, ops.base)
})
