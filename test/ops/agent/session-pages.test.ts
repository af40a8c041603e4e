import { t } from 'tap'
import { claudeResult, openAgentOps } from '../../helpers/agents.ts'
import { postgres } from '../../helpers/backends.ts'
import { request, wordsOf } from '../../helpers/http.ts'
import { CHECK_SHOP, calls, startModelOps } from '../../helpers/model.ts'
import { ended, runSession, sessionsOf } from '../../helpers/ops.ts'

const BROWSER = { accept: 'text/html', 'sec-fetch-mode': 'navigate' }

const { ops, play } = await startModelOps(t)
const { base } = ops

/** A page, as HTML, and as people read it, in one line. */
async function html(path: string, from = base) {
  const { status, text } = await request(from + path, { headers: BROWSER })
  if (status !== 200) throw new Error(`${path} answered ${status}`)
  return text
}
const read = async (path: string, from = base) => shown(await html(path, from))

function shown(html: string) {
  return wordsOf(html).replaceAll('&quot;', '"')
}

/** These one after the other, whatever is between. */
function inOrder(...parts: readonly RegExp[]) {
  return new RegExp(parts.map(({ source }) => source).join('.*'))
}

t.test('a session of a model reads as a story', async (t) => {
  const content = '<think>Hm.</think>I **look**.'
  const { id, page: show } = await play([
    { ...calls(['run_check', { service: 'shop' }], ['nothing', {}]), content },
    calls(['list_services', {}]),
    '- All is `well`.',
  ])
  const page = await show()
  const text = shown(page)
  t.match(text, /What was asked Started by the API, .* Tier 1, model default\. Is the shop well\?/)
  t.match(
    text,
    inOrder(/Outcome Completed in [\d.]+ s, 3 turns\. By the record: 3 tool calls/, /Ended/),
  )
  t.match(page, '<p>I <strong>look</strong>.</p>')
  t.match(page, '<li>All is <code>well</code>.</li>')
  t.match(
    text,
    inOrder(
      /What happened Turn 1 [\d,]+ tokens, [\d.]+ m?s I look \./,
      /run_check \{ "service": "shop" \} ok [\d.]+ m?s/,
      /Arguments \{ "service": "shop" \} Result ok health: answered 204/,
      /nothing error [\d.]+ m?s Result Error: There is no tool "nothing"/,
      /Turn 2 .* list_services ok .* Result shop check "health"/,
      /Turn 3 .* All is well \./,
    ),
  )
  t.equal([...page.matchAll(/<details class="call" id="call-\d">/g)].length, 3, 'folded')
  const lines = await read(`/sessions/${id}?lines=1`)
  for (const one of [page, lines]) t.notMatch(one, 'think', 'no reasoning')
  t.match(lines, /text I \*\*look\*\*\. .* tool run_check .* turn Turn 1: [\d,]+ tokens/)
})

t.test('the chain of an escalation, without the fences that only a model needs', async (t) => {
  const escalation = { reason: 'The disk is full.', findings: '## Disk\n\n- **31 GB** of logs' }
  const { id, page } = await play([calls(['escalate', escalation]), CHECK_SHOP, 'Mended.'])
  const child = await ended(ops)
  t.match(child, { tier: 2, parent_session_id: id, status: 'completed' })
  t.match(shown(await page()), /Escalated to the next tier after [\d.]+ s, 1 turn\./)
  const text = await read(`/sessions/${child.id}`)
  t.match(text, `Escalated from session ${id} ,`)
  t.match(text, /Is the shop well\? .* Findings The disk is full\. Disk 31 GB of logs/)
  t.match(
    text,
    new RegExp(
      `oldest first .* Is the shop well\\? Session ${id}, tier 1, .*` +
        `The disk is full\\. This session , tier 2, .*Cost of the chain: \\$0`,
    ),
  )
  for (const path of [`/sessions/${child.id}`, '/sessions']) {
    t.notMatch(await read(path), /FINDINGS-|Between the two lines/, path)
  }
  t.match(child.prompt_text, 'FINDINGS-', 'the API has it as it is')
})

t.test('a claim that the record contradicts stands below the record, in red', async (t) => {
  const operation = { service: 'shop', operation: 'redeploy', reason: 'slow' }
  const { page, id } = await play([calls(['run_operation', operation]), 'Redeployed once.'])
  t.match(
    await page(),
    /<p id="record" class="refused">\s*By the record: 1 tool call, 0 operations ran, 1 tool error,\s+1 operation was\s+asked for and did not run\.\s*<\/p>[^]*Redeployed once\./,
  )
  await ops.query(
    `insert into ops.actions (session_id, service, action_type, operation, at, outcome)
     values ($1, 'shop', 'redeployment', 'redeploy', now(), 'exit code 0')`,
    [id],
  )
  t.match(shown(await page()), '1 tool call, 1 operation ran, 1 tool error.')
  const good = await play([CHECK_SHOP, 'All is well.'])
  t.match(
    await good.page(),
    /<p id="record" class="">\s*By the record: 1 tool call, 0 operations ran\./,
  )
})

t.test('a long result is shortened, and there as a whole', async (t) => {
  await ops.query(
    `insert into ops.memories (category, observation, confidence, active, tier, created_at, updated_at, fades_at)
     select 'behavior', 'noted ' || n || ' xxxxxxxxxx', 0.7, true, 0, now(), now(), now() + interval '1 year'
       from generate_series(1, 20) as n`,
  )
  const { id, page: show } = await play([calls(['recall', {}]), 'All is well.'])
  const page = await show()
  const path = `/sessions/${id}/calls/1`
  t.match(page, `<a href="${path}" hx-get="${path}"`)
  t.equal([...page.matchAll(/noted \d+ x/g)].length, 7)
  const whole = await html(path)
  t.match(whole, /^<!doctype html>[^]*<h1>Session \d+, tool call 1<\/h1>/)
  t.equal([...whole.matchAll(/noted \d+ x/g)].length, 20)
  const fragment = await ops.page(path, { 'hx-request': 'true' })
  t.match(fragment, '<details class="call" id="call-1" open>')
  t.notMatch(fragment, 'Show all of it')
  for (const call of [`${id}/calls/2`, `${id}/calls/-1`, `${id}/calls/x`, '999999/calls/1']) {
    t.equal((await request(`${base}/sessions/${call}`)).status, 404, call)
  }
})

t.test('a story that is very long begins later, and says where the rest is', async (t) => {
  const { id, page } = await play([CHECK_SHOP, 'All is well.'])
  await ops.query(
    `insert into ops.session_lines (session_id, seq, at, kind, text, call)
     select $1, 1000 + n, now(), case n % 2 when 0 then 'result' else 'tool' end, 'step ' || n,
            1000 + (n + 1) / 2
       from generate_series(1, 500) as n`,
    [id],
  )
  const text = await page()
  t.equal([...text.matchAll(/<details class="call"/g)].length, 100)
  t.match(text, `href="/sessions/${id}?before=1301">Earlier output`)
  t.notMatch(text, 'step 300<')
  t.match(text, 'step 301<')
})

t.test('the list: filters, counts, and a page after the other', async (t) => {
  const sessions = await sessionsOf(ops, '?limit=1000')
  t.match(await read('/sessions'), `${sessions.length} sessions`)
  const byApi = sessions.filter(({ trigger }) => trigger === 'api').length
  for (const [query, count] of [
    ['status=escalated', 1],
    ['trigger=api', byApi],
    ['status=completed&trigger=escalation', 1],
  ] as const) {
    const text = await html(`/sessions?${query}`)
    t.match(text, '<tr role="row" data-id=', query)
    t.match(shown(text), new RegExp(` ${count} sessions?,? `), query)
    t.match(text, /<option value="\w+" selected>/, 'what was chosen stays')
  }
  const none = await read('/sessions?status=timed_out')
  t.match(none, '0 sessions No sessions match these filters.')
})

t.test('a chain is one row with its outcome, and opens to its members', async (t) => {
  const sessions = await sessionsOf(ops, '?limit=1000')
  const child = sessions.find(({ trigger }) => trigger === 'escalation')
  const text = await html('/sessions')
  const [, row = ''] =
    new RegExp(`<tr role="row" data-id="${child?.id}">(.*?)</tr>`, 's').exec(text) ?? []
  t.match(
    shown(row),
    new RegExp(
      `Is the shop well\\? 2 sessions, up to tier 2 .*Session ${child?.parent_session_id}, tier 1, .* escalated ` +
        `.*The disk is full\\. Session ${child?.id}, tier 2, .* completed completed API`,
    ),
  )
  t.notMatch(text, `data-id="${child?.parent_session_id}"`)
  const found = await html('/sessions?status=escalated&limit=1')
  t.match(found, `data-id="${child?.id}"`, 'found by any of its members')
})

t.test('the story of an agent: each result is with its call, in whatever order', async (t) => {
  const agents = await openAgentOps(t, postgres)
  const use = (id: string, command: string) => {
    return { type: 'tool_use', id, name: 'Bash', input: { command } }
  }
  const result = (tool_use_id: string, content: string, is_error = false) => {
    return { type: 'tool_result', tool_use_id, content, is_error }
  }
  const text = (text: string) => ({ type: 'text', text })
  const line = (type: string, ...content: readonly object[]) => ({ type, message: { content } })
  agents.agent.says([
    line('assistant', text('<think>Hm.</think>I look.')),
    line('assistant', use('a', 'df'), use('b', 'false')),
    line('user', result('b', 'it failed', true)),
    line('user', result('a', 'much is free'), result('unknown', 'from nowhere')),
    line('assistant', text('Done.')),
    claudeResult(),
  ])
  const { id } = await runSession(agents)
  const story = await read(`/sessions/${id}`, agents.base)
  t.match(
    story,
    inOrder(
      /What happened Turn 1 [\d.]+ m?s I look\./,
      /Bash \{ "command": "df" \} ok .* Result much is free/,
      /Bash \{ "command": "false" \} error .* Result it failed/,
      /from nowhere Last turn .* Done\./,
    ),
  )
  t.notMatch(story, 'Hm.')
})
