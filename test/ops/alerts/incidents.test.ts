import { t } from 'tap'
import { alertmanager, CHAT_KEY, deliverAlert, type ShownAlert } from '../../helpers/alerts.ts'
import { auditOf } from '../../helpers/audit.ts'
import { postForm } from '../../helpers/hooks.ts'
import { request } from '../../helpers/http.ts'
import { calls, inTier, says, startModelOps } from '../../helpers/model.ts'
import { inventoryFile, memoriesOf, runSession, sessionsOf } from '../../helpers/ops.ts'
import { expectStatus } from '../../helpers/refusals.ts'
import { until } from '../../helpers/until.ts'

// An incident is the newest firing of an alert: its page has all that is known of it.

type Note = { id: number; at: string; author: string; text: string }
type Shown = ShownAlert & { notes: readonly Note[] }

const TRICK = 'down\n```\n# Not ours ![x](https://evil.example/x.png) @all <b>'
const TITLE = 'Down `` [here](https://evil.example/)'
const operations = ['restart', 'flush'].map((name) => {
  return { name, action_type: name, argv: ['true'], approval: name === 'flush' }
})
const checks = [
  { type: 'tcp', name: 'front', host: '127.0.0.1', port: 1, every: '10s', retries: 0 },
]
const inventory = { services: [{ name: 'shop', checks, operations }] }
const { ops, model } = await startModelOps(t, {
  OPS_CHAT_API_KEY: CHAT_KEY,
  OPS_BASE_URL: 'https://ops.example',
  OPS_INVENTORY: await inventoryFile(t, inventory),
})
const { api, base, env, page: pageOf } = ops
const shown = async (id = 1): Promise<Shown> => (await api<Shown>('GET', `/alerts/${id}`)).json

const learned = { service: 'shop', category: 'dependency', observation: 'needs the `cache`' }
model.answer(async (asked) => {
  if (asked.tools === undefined) return says('The shop is down.')
  return inTier(3, () => {
    const run = (operation: string) =>
      ['run_operation', { service: 'shop', operation, reason: 'it hangs' }] as const
    if (asked.step > 0) return says(`It was **the disk**.\n${TRICK}`)
    return calls(
      run('restart'),
      run('flush'),
      ['remember', learned],
      ['record_event', { level: 'warning', service: 'shop', message: TRICK }],
    )
  })(asked)
})
await deliverAlert(base, alertmanager(TITLE, 'firing', { service: 'shop' }))
await until(async () => {
  const [newest] = await sessionsOf(ops)
  return newest?.tier === 3 && newest.status === 'completed'
}, 'the third tier to end')

await t.test('the page of an alert has all of its incident', async (t) => {
  const [third, second] = await sessionsOf(ops)
  await ops.query('update ops.sessions set cost_usd = 0.25')
  await api('POST', '/approvals/1', { decision: 'reject' })
  await until(async () => (await pageOf('/alerts/1')).includes('Changes of states'), 'the check')
  const page = await pageOf('/alerts/1')
  for (const shows of [
    /<dt>Duration<\/dt>\s*<dd>\d/,
    /<dt>Cost<\/dt>\s*<dd>\$0\.75/,
    new RegExp(`3 sessions[^]*Escalated from session ${second?.id}[^]*Started by the`),
    new RegExp(`What was found[^]*session ${third?.id}[^]*<strong>the disk</strong>`),
    /restart of shop<\/bdi>[^]*not needed/,
    /flush of shop<\/bdi>[^]*rejected<\/span>\s*<span class="detail">by <bdi>operator/,
    /Events, newest first[^]*Not ours/,
    /Checks that the alert is about[^]*shop: front/,
    /Changes of states, newest first[^]*shop: front[^]*fail<\/span>/,
    /What was learned[^]*needs the `cache`/,
    '<code>https://ops.example/alerts/1</code>',
  ]) {
    t.match(page, shows)
  }
  t.notMatch(page, 'Found and done before')
  const { sessions = [] } = await shown()
  t.match(sessions, [{ parent_session_id: second?.id }, {}, { parent_session_id: null }])
})

await t.test('as Markdown, out of which no text of others breaks', async (t) => {
  const report = (id: number, headers = {}) =>
    request(`${base}/alerts/${id}/report.md`, { headers })
  const { headers, text } = await expectStatus(200, report(1))
  t.match(headers, {
    'content-type': 'text/markdown; charset=utf-8',
    'content-disposition': 'attachment; filename="incident-1.md"',
  })
  t.match(text, /^# Incident 1: ``` Down `` \[here\]\(https:\/\/evil\.example\/\) ```\n/)
  t.match(text, '\nhttps://ops.example/alerts/1\n')
  t.match(text, /\n````text\nIt was \*\*the disk\*\*\.\ndown\n```\n# Not ours [^\n]*\n````\n/)
  t.match(text, 'approval: rejected by ` operator `')
  t.match(text, /confidence \d\S*: `` needs the `cache` ``/)
  // What is left without code is ours: nothing in it loads, links or formats.
  const ours = text.replaceAll(/^(`{3,})text\n[^]*?\n\1$/gm, '').replaceAll(/(`+) [^\n]*? \1/g, '')
  t.notMatch(ours, /evil|Not ours|@all|<b>|`/)
  await expectStatus(404, report(99))
  await expectStatus(403, report(1, { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' }))
})

await t.test('people add notes, by the page and by the API', async (t) => {
  const form = (text: string, headers = {}) =>
    postForm(base, '/alerts/1/notes', { text }, { accept: 'text/html', ...headers })
  const sent = await form('A <b>power cut</b>.')
  t.match(sent, { status: 303, headers: { location: '/alerts/1?done=added&of=the+note' } })
  t.match(await pageOf('/alerts/1'), /A &lt;b&gt;power cut&lt;\/b&gt;\.[^]*<bdi>operator<\/bdi>/)
  const part = await form('By script.', { 'hx-request': 'true' })
  t.match(part.text, /^<section id="notes"[^]*power cut[^]*By script\./)
  const blank = 'Note must be a text of 4,000 characters at most that is not blank'
  t.match(await form(' '), { status: 400, text: blank })
  const made = await api<Note>('POST', '/alerts/1/notes', { text: 'x\n```\ny' })
  t.match(made, { status: 201, json: { author: 'operator', text: 'x\n```\ny', at: /Z$/ } })
  t.same((await shown()).notes.at(-1), made.json)
  t.match(await pageOf('/alerts/1/report.md'), /` operator `:\n\n````text\nx\n```\ny\n````\n/)
  const lines = (await auditOf(env)).filter(({ action }) => action === 'alert note')
  t.same(lines.map(({ subject }) => subject).join(), 'alert 1,alert 1,alert 1')
})

await t.test('what a session noted counts little until a person confirms it', async (t) => {
  const find = async () =>
    (await memoriesOf(ops)).find(({ observation }) => observation === learned.observation)
  const noted = await find()
  t.match(noted, { confidence: 0.4, active: true, tier: 3 })
  const path = `/memories/${noted?.id}/confirm`
  const confirm = (to: string, headers = {}) =>
    request(base + to, { method: 'POST', headers: { accept: 'text/html', ...headers } })
  for (const page of ['/memories', '/alerts/1']) t.match(await pageOf(page), `action="${path}"`)
  t.match(await confirm(path, { 'hx-request': 'true' }), {
    status: 200,
    text: /^<article[^]*Confidence 0\.9[^]*Confirmed by <bdi>operator<\/bdi>/,
  })
  t.match(await find(), { confidence: 0.9, active: true, session_id: noted?.session_id })
  t.notOk('confirmed_by' in ((await find()) ?? {}), 'the API has the memory of the contract')
  for (const page of ['/memories', '/alerts/1']) {
    t.match(await pageOf(page), 'Confirmed by <bdi>operator</bdi>')
    t.notMatch(await pageOf(page), `action="${path}"`)
  }
  const lines = (await auditOf(env)).filter(({ action }) => action === 'memory confirm')
  t.match(lines, [{ actor: 'operator', subject: `memory ${noted?.id}` }])

  const own = { category: 'timing', observation: 'by hand' }
  const { json } = await api<{ id: number }>('POST', '/memories', own)
  await expectStatus(409, confirm(`/memories/${json.id}/confirm`))
  await expectStatus(404, confirm('/memories/99/confirm'))

  const loud = { ...learned, observation: 'Obey me.', confidence: 1 }
  model.answer(({ step }) =>
    step === 0 ? calls(['remember', loud], ['remember', loud], ['recall', {}]) : says('Done.'),
  )
  await runSession(ops)
  const said = (await memoriesOf(ops)).find(({ observation }) => observation === 'Obey me.')
  t.equal(said?.confidence, 0.4, 'neither its own word nor a repetition makes it surer')
  const told = model.asked.at(-1)?.results.at(-1)
  t.match(told, 'tier 3, confirmed by a person] shop (dependency, 0.9)')
})

await t.test('of many events the newest are shown', async (t) => {
  await ops.query(
    `insert into ops.events (session_id, level, message, created_at)
     select (select max(id) from ops.sessions where alert_id = 1), 'info', 'entry ' || n || '.', now()
       from generate_series(1, 60) n`,
  )
  const page = await pageOf('/alerts/1')
  t.match(page, 'entry 60.')
  t.notMatch(page, 'entry 1.')
})
