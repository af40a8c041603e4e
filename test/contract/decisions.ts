import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { apiOf } from '../helpers/api.ts'
import { accepted, addProvider, post } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { ROOT } from '../helpers/program.ts'
import { refuses } from '../helpers/refusals.ts'
import type { TestServer } from '../helpers/server.ts'
import { unbound, type Check, type Contract } from './frame.ts'

type ServerCheck = Check<TestServer>

const ABOUT = unbound('it is about the documents')
const INSIDE = unbound('it is how the program is built')
const REASON = unbound('it says why')

const VARIABLE =
  'test/house/docs.test.ts > the page on settings has every variable as the program declares it'
const WORDS = 'test/cli/usage.test.ts > the man pages have every command, flag and variable'
const PROXIED = 'test/kernel/proxy-signs.test.ts > guarded routes refuse it and say what to set'
const BOTH_FORMS =
  'test/hooks/settings.test.ts > without script: the page, or the refusal on the whole page'
const SPELLINGS =
  'test/hooks/receive/receivers.test.ts > both spellings of the headers verify, and the neutral one wins'
const TOKEN_PLACES =
  'test/hooks/receive/receivers.test.ts > a token is taken from where senders put it'
const PROVIDER_MADE =
  'test/hooks/receive/providers.test.ts > a token is made, shown once, and only its hash is stored'
const PRIVATE_TARGETS =
  'test/hooks/send/replay.test.ts > what is not on the public internet must be allowed'
const LISTED = 'test/links/names/lists.test.ts > pages of every list'
const OWNERS = 'test/links/people/people.test.ts > owners and shares: who adds and removes whom'
const SHOWN_ONCE =
  'test/links/people/tokens.test.ts > a token is shown once, and listed to its user alone'
const SESSION_INPUT = 'test/ops/agent/api-sessions.test.ts > what is refused, and begins nothing'
const CHAIN = 'test/ops/agent/api-sessions.test.ts > escalation from tier 1 to 3'
const BUDGET =
  'test/ops/agent/model-endpoint.test.ts > a spent budget of the session, its chain or the day'
const ALERT_KEPT =
  'test/ops/alerts/webhook-briefs.test.ts > 502 when there is no brief: the alert is kept'
const GROUPS =
  'test/ops/alerts/webhook.test.ts > real senders: what is grouped, and what it is called'
const CLOCK = 'test/hooks/clock.test.ts > lists keep the order of ids, and times are found'
const OLD_DATABASE =
  'test/db/migrate.test.ts > a database that does not fit is refused by every command in one line'

const noNumber: ServerCheck = async (t, { hooks }) => {
  for (const id of ['x', '1x', '-1', '1.0']) {
    refuses(t, await request(`${hooks}/log/${id}`), [404])
  }
}

/** A body that decodes to 100 times its size is found by nothing that is in it; its bytes are there. */
const bomb: ServerCheck = async (t, { hooks }) => {
  await addProvider(hooks, 'bombs', { open: true })
  const api = apiOf(hooks)
  const zipped = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
  for (const [pad, found] of [
    [100, 1],
    [1_000_000, 0],
  ] as const) {
    const body = gzipSync(JSON.stringify({ mark: pad, pad: 'x'.repeat(pad) }))
    const id = await accepted(post(hooks, 'generic/bombs', body, zipped))
    type Found = { events: readonly unknown[] }
    const { json } = await api<Found>('GET', `/events?provider=generic:bombs&json=mark=${pad}`)
    t.equal(json.events.length, found, `${pad}`)
    const payload = body.toString('base64')
    t.match(await api('GET', `/events/${id}`), { json: { payload, payload_encoding: 'base64' } })
  }
}

const watched: ServerCheck = async (t) =>
  t.match(readFileSync(join(ROOT, 'deploy/gatehouse.service'), 'utf8'), /^WatchdogSec=\d+s$/m)

const documented: ServerCheck = async (t, { hooks, links, ops }) => {
  for (const base of [hooks, links, ops]) {
    t.match(await request(`${base}/api/openapi.yaml`), { status: 200, text: /^openapi: / })
    t.equal((await request(`${base}/api/docs/`)).status, 200)
  }
}

/** The sentences of docs/contract/decisions.md. */
export const DECISIONS: Contract<TestServer> = {
  'Decisions: what': {
    '`hooks.md`,': ABOUT,
    'This page answers': ABOUT,
    'Where this page': ABOUT,
    'Where both': ABOUT,
    'The product is': ABOUT,
  },
  '1. One program': {
    'The specs reuse paths': 'test/cli/serve.test.ts > one line says that it is ready, and where',
    '`serve` starts': 'test/cli/serve.test.ts > one line says that it is ready, and where',
    'Program name': WORDS,
    'Commands:': WORDS,
    '`--json` gives':
      'test/cli/access.test.ts > lists of providers and endpoints, and what is refused',
    'Exit codes:': 'test/cli/usage.test.ts > each command, typed wrong in five ways',
    'A secret that a command makes':
      'test/cli/access.test.ts > users and tokens: two commands, then the first request',
    '`provider add NAME': WORDS,
    'The embedded database belongs':
      'test/faults/embedded-crash.test.ts > a directory has one user at a time',
    'While `serve` runs':
      'test/cli/control.test.ts > commands beside a server on the embedded engine',
    'Every command that opens': 'test/cli/check.test.ts > nothing is created by looking',
    'Configuration:':
      'test/cli/configuration.test.ts > flag over environment file over environment over default',
    '`--env-file FILE`':
      'test/cli/configuration.test.ts > a changed environment file counts without a restart; a broken one changes nothing',
    'A secret variable':
      'test/cli/configuration.test.ts > a secret is its whole value, of a credential without its last newline',
    '`DATABASE_URL` |': VARIABLE,
    '`GATEHOUSE_DATA_DIR` |': VARIABLE,
    '`HOOKS_ADDR`,': VARIABLE,
    '`HOOKS_BASE_URL`,':
      'test/links/api.test.ts > addresses and keyword come from the configuration',
    '`GATEHOUSE_TRUSTED_PROXIES` |':
      'test/hooks/guards.test.ts > a trusted proxy names the source',
    '`GATEHOUSE_USER_HEADER` |': 'test/links/access.test.ts > who is believed',
    '`HOOKS_CODE_HOST_SECRET`,': VARIABLE,
    'the same with':
      'test/hooks/receive/rotation.test.ts > the current and the previous secret of the configuration verify',
    '`GATEHOUSE_SECRET_KEY` |':
      'test/hooks/receive/schemes.test.ts > secrets are stored encrypted; with another key the sender is disabled',
    '`HOOKS_MAX_BODY` |':
      'test/hooks/receive/ingest.test.ts > the limit itself is accepted, a byte more is not',
    '`HOOKS_FRESHNESS_S` |':
      'test/hooks/receive/signatures.test.ts > the freshness window is inclusive in both directions',
    '`HOOKS_QUEUE_URL`,':
      'test/hooks/agents/queue.test.ts > one variable alone is logged, and no queue is read',
    '`HOOKS_REPLAY_TARGETS` |': PRIVATE_TARGETS,
    '`LINKS_SHORT_KEYWORD` |':
      'test/links/api.test.ts > addresses and keyword come from the configuration',
    '`OPS_CHAT_API_KEY`,':
      'test/ops/alerts/webhook-briefs.test.ts > model, prompt and endpoint are looked up on every request',
    '`OPS_MODEL_URL`,': VARIABLE,
    '`OPS_TIER1_MODEL`,': VARIABLE,
    '`OPS_INTERVAL`,':
      'test/ops/api.test.ts > what was saved wins over the settings of a new start',
    '`OPS_STATE_DIR`,': VARIABLE,
    '`OPS_RUNNER`,':
      'test/ops/agent/model-endpoint.test.ts > the environment file chooses the runner for each session',
    '`OPS_SESSION_BUDGET_USD`,': BUDGET,
    '`OPS_FIRST_OUTPUT_S`,': VARIABLE,
    '`OPS_NOTIFY_URL` |': VARIABLE,
    'Beyond loopback:':
      'test/hooks/guards.test.ts > an address beyond loopback needs a trusted proxy',
    'A unix socket counts': 'test/cli/serve.test.ts > a unix socket serves like a port',
    'On loopback the UIs': REASON,
    'hooks UI,': 'test/hooks/guards.test.ts > pages answer to our own names only',
    'links UI': PROXIED,
    '`/webhooks/*`,': 'test/hooks/guards.test.ts > receivers and the probe answer to any name',
    'redirects,': 'test/kernel/proxy-signs.test.ts > on open routes it brings nobody',
    'All responses:': 'test/hooks/guards.test.ts > every answer carries its protective headers',
    'Each response carries': 'test/hooks/pages.test.ts > the answer’s id is that of its log line',
    'HEAD works': 'test/links/api.test.ts > HEAD is GET without its body',
    'A form post answers': BOTH_FORMS,
    "A browser's own navigation": BOTH_FORMS,
    '`/metrics` (OpenMetrics': 'test/hooks/pages.test.ts > GET /metrics',
    'SIGTERM: stop accepting': 'test/hooks/stop.test.ts > signals while a request never ends',
  },
  '2. Data': {
    'One PostgreSQL schema':
      'test/db/migrate.test.ts > several processes migrate one empty database at once',
    'Embedded default:': INSIDE,
    'It must be durable': 'test/faults/hooks-crash.test.ts > kill -9 under load',
    'The embedded engine serves':
      'test/cli/db-move.test.ts > an embedded database moves to a server',
    'Every figure that must':
      'test/faults/embedded-crash.test.ts > a disk that fails ends the engine and acknowledges nothing',
    'Several instances': 'test/links/instances.test.ts > a change counts on the other server',
    'Timestamps:': 'test/hooks/api.test.ts > an event, and its bytes',
  },
  '3. hooks': {
    'Signed: unknown': 'test/hooks/receive/receivers.test.ts > the checks have an order',
    'Generic: unknown':
      'test/hooks/receive/receivers.test.ts > disabled comes before the length, and that before the token',
    'On signed receivers':
      'test/hooks/receive/receivers.test.ts > forms are read as forms when their type says so',
    '`/log/{id}` with': noNumber,
    'Of several presented tokens':
      'test/hooks/receive/receivers.test.ts > of several tokens the first place decides',
    'Lower-case hex':
      'test/hooks/receive/signatures.test.ts > a signature or a time that is not as its scheme writes it is malformed',
    '`payments`: exactly':
      'test/hooks/receive/signatures.test.ts > payments: one time of digits, any number of v1, decoys ignored',
    '`code_host` |': SPELLINGS,
    '`payments` |': SPELLINGS,
    '`chat` |': SPELLINGS,
    '`generic:<name>` |':
      'test/hooks/receive/receivers.test.ts > delivery ids come from three headers, in order',
    "A signed provider's delivery":
      'test/hooks/receive/ingest.test.ts > without an id the body stands for it, at signed receivers',
    '`external_id` is unique':
      'test/hooks/receive/ingest.test.ts > a repeat later, also with another body, changes nothing',
    '`verify_detail`:':
      'test/hooks/log/event-page.test.ts > everything that is known of an event, and its bytes',
    'A `url_verification`':
      'test/hooks/receive/receivers.test.ts > a handshake is verified first, then echoed, and stored never',
    'Order:': TOKEN_PLACES,
    'Only SHA-256': PROVIDER_MADE,
    'Names of signed': 'test/hooks/receive/providers.test.ts > what is not created',
    'An operator creates': PROVIDER_MADE,
    'It is created disabled': 'test/cli/access.test.ts > provider and endpoint beside a server',
    'A generic provider of trust':
      'test/hooks/receive/schemes.test.ts > Standard Webhooks: what fails is 403, and the reason is kept',
    '`secret_status`:':
      'test/cli/access.test.ts > lists of providers and endpoints, and what is refused',
    'Stored headers replace':
      'test/hooks/receive/receivers.test.ts > secret headers are stored as a mark',
    'The query string':
      'test/hooks/receive/receivers.test.ts > a token in an address is stored as a mark',
    'Nothing secret':
      'test/hooks/receive/receivers.test.ts > nothing secret stands in a log, a page, metrics or the database',
    '`source_ip` is': 'test/hooks/guards.test.ts > a trusted proxy names the source',
    '**EventDetail.payload**': 'test/hooks/api.test.ts > an event, and its bytes',
    'The stored column': INSIDE,
    'Each 401/403/413':
      'test/hooks/receive/rejections.test.ts > each refusal is one of a known kind',
    'Shown on':
      'test/hooks/receive/rejections.test.ts > all are listed, newest first, by network only',
    '`event-received` carries':
      'test/hooks/log/stream.test.ts > head, retry and status come at once',
    '`receiving` =': 'test/hooks/log/stream.test.ts > head, retry and status come at once',
    'Ids are visible':
      'test/hooks/agents/mcp-tools.test.ts > a call after an acknowledged delivery shows it, under load',
    'Resume by': 'test/hooks/log/stream.test.ts > resume by header, by query, and from now on',
    'A client whose socket':
      'test/faults/hooks-stream-limits.test.ts > a client that never reads is cut off, and nobody else notices',
    '`Cache-Control:': 'test/hooks/log/stream.test.ts > head, retry and status come at once',
    '`since` takes': 'test/hooks/log/log.test.ts > what is refused',
    'Full page': INSIDE,
    '**Settings**:':
      'test/hooks/settings.test.ts > the smallest values, absent fields, an empty target',
    '**Health.** 200': 'test/faults/hooks-outage.test.ts > PostgreSQL goes away for a while',
    '`db` and': 'test/faults/hooks-outage.test.ts > PostgreSQL goes away for a while',
    '`broker` is':
      'test/hooks/agents/queue.test.ts > one variable alone is logged, and no queue is read',
    'Redis or Valkey':
      'test/hooks/agents/queue.test.ts > entries of a dead consumer are taken over, trimmed ones skipped',
    'Payload = field':
      'test/hooks/agents/queue.test.ts > the field payload is the payload, byte for byte',
    'Provider `queue':
      'test/hooks/agents/queue.test.ts > every stream is a provider with a channel',
    'MCP over':
      'test/hooks/agents/mcp.test.ts > 2025: handshake, ping, notifications, errors within a 200',
    'An endpoint is':
      'test/hooks/agents/mcp.test.ts > the settings page makes an endpoint and shows its token once',
    'Tools:':
      'test/hooks/agents/mcp-tools.test.ts > the list of tools says what each takes, gives and does',
    'Resource `gatehouse':
      'test/hooks/agents/mcp-tools.test.ts > a part of a payload says what it is',
    'Error codes':
      'test/hooks/agents/mcp-tools.test.ts > each refusal has its code, and is counted',
    '**Replay** (tool': PRIVATE_TARGETS,
    'Each attempt is':
      'test/hooks/send/replay.test.ts > each attempt is kept, newest first, with its reason',
    '**Forwarding** (':
      'test/hooks/send/relay.test.ts > events go out in order, each when it is asked for',
  },
  '4. links': {
    'Lists:': LISTED,
    'Sort keys:': LISTED,
    '`limit` that': 'test/links/names/lists.test.ts > what is no page, order or filter is refused',
    'A cursor that':
      'test/links/names/lists.test.ts > what is no page, order or filter is refused',
    'GET owners:': OWNERS,
    'POST owners:': 'test/links/people/people.test.ts > what is refused of owners and shares',
    'DELETE owners:': 'test/links/people/people.test.ts > what is refused of owners and shares',
    'A co-owner may': OWNERS,
    'Codes: 400':
      'test/links/api.test.ts > the document describes everything once, with the codes of each status',
    'Error texts':
      'test/links/api.test.ts > 401 UNAUTHORIZED without a valid token, before anything else',
    'Order 401': 'test/links/api.test.ts > unknown paths, wrong methods, and what is for admins',
    'PUT: `url`': 'test/links/names/input.test.ts > visibility and append_path',
    '`visibility`:': 'test/links/access.test.ts > who is redirected',
    'Optional on': 'test/links/names/input.test.ts > visibility and append_path',
    'Visible to a caller': 'test/links/names/lists.test.ts > who finds what',
    'Shares:': OWNERS,
    'Tokens:': SHOWN_ONCE,
    'GET `{tokens:': SHOWN_ONCE,
    '`scope`:': 'test/links/people/tokens.test.ts > a token does what its scope has',
    'The API never':
      'test/links/api.test.ts > what is no valid token, and what does not stand for one',
    'Slug `^': 'test/links/names/input.test.ts > slug',
    'Reserved exactly:': 'test/links/names/input.test.ts > slug',
    'The UI lives': 'test/links/visits/resolver.test.ts > no visit reaches what is reserved',
    'One list,': INSIDE,
    'Limits: url': 'test/links/names/input.test.ts > tags',
    'URL: `http`': 'test/links/names/input.test.ts > url',
    'Resolver: `GET':
      'test/links/visits/resolver.test.ts > a redirect says what it must and nothing more',
    'Exact, then':
      'test/links/visits/resolver.test.ts > a slug in every spelling leads to its link',
    'Path pass-through:': 'test/links/visits/resolver.test.ts > further segments and queries',
    '`/{slug}+` previews.':
      'test/links/access.test.ts > the preview is a page that goes nowhere by itself',
    'Unknown: 404':
      'test/links/visits/resolver.test.ts > an unknown slug: what was meant, and a way to make it',
    'HEAD is never': 'test/links/visits/clicks.test.ts > what counts, from where, and with what',
    'Redirects come': 'test/links/instances.test.ts > a change counts on the other server',
    'Clicks are':
      'test/links/visits/clicks.test.ts > stopped under load: what was answered is counted',
    'UI sign-in:': 'test/links/access.test.ts > the local operator',
    "A tag listing's":
      'test/links/names/hidden.test.ts > an invisible tag is like one that does not exist, on every page',
    'Pages: my links':
      'test/links/pages-forms.test.ts > made and changed: a browser goes to its page, by either way',
  },
  '5. ops': {
    'Session `status`:':
      'test/ops/agent/api-sessions.test.ts > 201 for a trigger when none runs, and its end',
    'Event `level`:':
      'test/ops/agent/model.test.ts > a session with a model: tools, events, memories, summary, cost',
    'Memory `category`:': 'test/ops/api.test.ts > what is added and listed',
    '`interval` is':
      'test/ops/api.test.ts > 400 for a bad field, and nothing of the others is applied',
    '`limit` over':
      'test/ops/api.test.ts > events: newest first, 100 without a limit, 1,000 at most',
    '`confidence` 0..1': 'test/ops/api.test.ts > what can not be added',
    'PUT config':
      'test/ops/api.test.ts > 400 for a bad field, and nothing of the others is applied',
    'Operator memories': 'test/ops/api.test.ts > what is added and listed',
    'A blank `prompt`': SESSION_INPUT,
    '`chain_cost` counts': CHAIN,
    '`exit_code`:':
      'test/ops/agent/cli-agents.test.ts > an agent that ignores SIGINT and SIGTERM, and children in sessions of their own',
    'A spent budget': BUDGET,
    '`OPS_INVENTORY` (JSON':
      'test/ops/agent/probe.test.ts > a wrong inventory stops the start, in one line that says where',
    'Without a file': 'test/ops/agent/probe.test.ts > with nothing configured',
    '`probe`, the': 'test/ops/agent/probe.test.ts > the session at the start',
    '`model` is': 'test/ops/agent/probe.test.ts > the session at the start',
    '`model`: our':
      'test/ops/agent/model.test.ts > a session with a model: tools, events, memories, summary, cost',
    '`cli`: a':
      'test/ops/agent/cli-agents.test.ts > the agent gets an argument list, a bare environment and a folder of its own',
    '**Tools by tier**':
      'test/ops/agent/model.test.ts > each tier has its tools and its model; without a price the cost is null',
    'Cooldown and dry-run':
      'test/ops/agent/cooldowns-limits.test.ts > defaults: 2 restarts in 4 h for each service, 1 redeployment in 24 h',
    'Sandbox children':
      'test/ops/agent/tools-sandbox.test.ts > commands run in bwrap where it works',
    '`escalate {reason': CHAIN,
    'A partial unique':
      'test/ops/agent/one-session.test.ts > 30 starts at once on two servers: one session runs',
    'A running row':
      'test/ops/agent/one-session.test.ts > what a server leaves that is killed, the next one fails, once',
    'Wall clock':
      'test/ops/agent/deadlines.test.ts > a session without a first output is timed out',
    'Stop: SIGINT':
      'test/ops/agent/cli-agents.test.ts > an agent that ignores SIGINT and SIGTERM, and children in sessions of their own',
    'The scheduler starts':
      'test/ops/agent/one-session.test.ts > two schedulers start one session an interval',
    'Every line of':
      'test/ops/redaction.test.ts > a secret that a model or a tool echoes is kept nowhere',
    '`/sessions/{id}/stream`:':
      'test/ops/agent/stream.test.ts > two servers: cut off again and again, no hole and no repeat',
    'A finished session':
      'test/ops/agent/stream.test.ts > a finished session is replayed, from anywhere, and closes',
    'Same service':
      'test/ops/agent/model.test.ts > seen again, a faded memory is active from 0.3 on, unless people put it to rest',
    'Active ones':
      'test/ops/agent/model.test.ts > memories in the prompt: the active ones, best first, 8,000 characters',
    'Order: key':
      'test/ops/alerts/webhook.test.ts > 202 acknowledged while a session runs, without a model',
    'Error body': ALERT_KEPT,
    '`tier`: an': 'test/ops/alerts/webhook-briefs.test.ts > tier: read, clamped and taken out',
    'Every delivery': ALERT_KEPT,
    'The fingerprint': GROUPS,
    'Generated from':
      'test/ops/api.test.ts > describes everything once, with its schemas by their names',
    'Links and hooks': documented,
    '`/` (state': 'test/ops/pages.test.ts > every page is a whole one',
    'Form posts:': 'test/ops/pages.test.ts > trigger: 303, or the fragment',
  },
  '6. Amendments': {
    'They win': ABOUT,
    'The three specs': ABOUT,
    'An unknown variable':
      'test/cli/configuration.test.ts > an unknown variable in the environment is told of once, and stops nothing',
    'A peer is': INSIDE,
    'Only a unix':
      'test/kernel/peers-reset.test.ts > a client that resets its connection is nobody',
    '**Signs of': PROXIED,
    'On guarded routes': PROXIED,
    '**Identity header**': 'test/links/access.test.ts > who is believed',
    '`ETag` on': 'test/links/names/links.test.ts > ETag and If-Match',
    'The last admin': 'test/links/people/people.test.ts > the last admin stays one, and enabled',
    'A loop that':
      'test/links/names/names.test.ts > a loop does not tell where a secure link leads',
    'An appended path': 'test/links/visits/resolver.test.ts > further segments and queries',
    'A scheme of':
      'test/hooks/receive/presets.test.ts > checks of an address are answered as the sender asks, and not stored',
    'A secret is':
      'test/hooks/receive/schemes.test.ts > a secret that the sender made is taken, and may come from a file',
    'Events may be': 'test/hooks/api.test.ts > who may call',
    'Within one process':
      'test/hooks/clock.test.ts > a clock that is seconds behind is waited for',
    'SIGTERM during':
      'test/ops/alerts/webhook-reading.test.ts > a stop while alerts are read loses nothing, and starts nothing',
    'Identity of': GROUPS,
    'One synthesis':
      'test/ops/alerts/webhook-reading.test.ts > parallel alerts: one model call at a time',
    'Synthesis counts':
      'test/ops/alerts/webhook-reading.test.ts > a brief counts against the budget of the day',
    'Retention:':
      'test/ops/data.test.ts > what is old is removed or fades at the start, and nothing else',
    'Allowed read-only':
      'test/ops/agent/tools-sandbox.test.ts > without a sandbox commands are off, and the log says so at the start',
    'Checks and operations':
      'test/ops/watch/checks.test.ts > command: one that is told to end has the time for it',
    '`OPS_FIRST_OUTPUT_S` (60)': VARIABLE,
    'A non-integer': SESSION_INPUT,
    'A condition that':
      'test/ops/notices.test.ts > a critical check is told when it fails, and when it is good again',
    'Nothing was released': OLD_DATABASE,
    '`npm test` short': unbound('it is about the tests'),
  },
  '7. Amendments': {
    'They win': ABOUT,
    'Contract texts': ABOUT,
    'Nothing is released': OLD_DATABASE,
    '`gatehouse check` fails':
      'test/cli/check.test.ts > each wrong value has its line, and the rest is looked at',
    '**Variables** are':
      'test/cli/configuration.test.ts > what counts at once, and what waits for the next start',
    'Order is by': CLOCK,
    '`received_at` is': CLOCK,
    "An event's type":
      'test/hooks/receive/ingest.test.ts > an event has the type that its delivery claims',
    'The rule that':
      'test/hooks/receive/ingest.test.ts > an event has the type that its delivery claims',
    '**Unknown members**':
      'test/kernel/unknown-members.test.ts > hooks: each body is refused with 422 and the name of the member',
    'PUT config and':
      'test/kernel/unknown-members.test.ts > links and ops take them where their contracts name the body',
    'A scheme may':
      'test/hooks/receive/presets.test.ts > checks of an address are answered as the sender asks, and not stored',
    'Chosen answers and':
      'test/hooks/receive/answers.test.ts > unless chosen, a receiver takes POST alone and answers 202',
    '**Posts** of': BOTH_FORMS,
    'Without script':
      'test/browser/no-script.test.ts > a provider: switched, made, rotated, removed',
    '**Chosen answers**':
      'test/hooks/receive/answers.test.ts > the chosen answer: text, JSON or XML, in a sandbox',
    '**New open paths**': 'test/ops/watch/beats.test.ts > each method and each word of a job',
    '`/mcp/ops` and': 'test/links/transfer/tools.test.ts > who may not call at all',
    '**Secrets of':
      'test/hooks/receive/rotation.test.ts > the environment wins, and the card says so',
    'One engine:':
      'test/hooks/send/replay-jobs.test.ts > many events: the oldest first, two jobs beside each other',
    '`Idempotency-Key` and':
      'test/hooks/send/destinations.test.ts > the key of a delivery is that of its event and this installation',
    'A refused address':
      'test/hooks/send/destinations.test.ts > 410 disables at once; an address that became private is tried again',
    '`CDN-Loop` is':
      'test/hooks/send/destinations.test.ts > a delivery that comes back is stored once',
    'A call that':
      'test/ops/agent/model-endpoint.test.ts > a call in a text acts in no spelling, whatever the model does with it',
    'Once an endpoint':
      'test/ops/agent/model-endpoint.test.ts > once a model has called a tool by the protocol, its text is text',
    '**Checks** have':
      'test/ops/dashboard.test.ts > what nobody has looked at is not well, anywhere',
    'The probe session':
      'test/ops/agent/probe.test.ts > what is unknown is told once, with its end, and is no good news',
    '**A failing check**':
      'test/ops/alerts/investigations.test.ts > what fails together starts one session',
    '**Notices** are':
      'test/cli/notify.test.ts > the running service sends to it, beside OPS_NOTIFY_URL',
    '`OPS_ALERT_MAX_TIER` (default':
      'test/ops/alerts/webhook-briefs.test.ts > OPS_ALERT_MAX_TIER bounds senders, OPS_MAX_TIER everybody',
    "The contract's 502":
      'test/ops/alerts/webhook-briefs.test.ts > OPS_BRIEF_FALLBACK: its session gets the alert itself',
    'The answer to':
      'test/ops/alerts/webhook-reading.test.ts > Retry-After is obeyed within the deadline',
    'A session ended':
      'test/ops/alerts/alerts.test.ts > an alert whose session ended with the server is read again',
    'Each change names':
      'test/hooks/audit.test.ts > providers, endpoints and settings: each change, by each kind of actor',
    "Golink's folding":
      'test/links/names/names.test.ts > dashes and dots do not matter where no link has the name',
    '**Sign-in** stays':
      'test/deploy/proxies.test.ts > pages ask who comes, whatever a visitor claims',
    'We ship recipes':
      'test/deploy/proxies.test.ts > pages ask who comes, whatever a visitor claims',
    'What is read':
      'test/ops/agent/model-endpoint.test.ts > a model in a loop: its answer is read in one go, and bounded',
    'What is cut':
      'test/ops/alerts/webhook-briefs.test.ts > a long alert is cut, and where it is shown that is said',
    'A worker beside':
      'test/faults/watchdog.test.ts > after a long silence the process is ended, and nothing is lost',
    'The unit has': watched,
    '**Pages that read': 'test/hooks/guards.test.ts > no page of another site loads one unseen',
    '**Query parameters**': 'test/ops/api.test.ts > what is added and listed',
    "The receivers' paths": 'test/links/visits/resolver.test.ts > further segments and queries',
  },
  '8. Amendments': {
    'They win': ABOUT,
    'Contract texts': ABOUT,
    'Without `GATEHOUSE_SECRET_KEY`':
      'test/cli/secret-key.test.ts > the first start makes the key, and everything uses it',
    'The variable wins':
      'test/cli/secret-key.test.ts > instances on one database are told that their keys differ',
    'A database that':
      'test/cli/secret-key.test.ts > instances on one database are told that their keys differ',
    'Backups never':
      'test/cli/secret-key.test.ts > the first start makes the key, and everything uses it',
    'What a command':
      'test/links/instances.test.ts > a change counts for the next visit to its server',
    'Verified and':
      'test/hooks/log/bodies.test.ts > a signed receiver verifies what was sent, and reads what was meant',
    'What is shown':
      'test/hooks/log/bodies.test.ts > a body is read the same way everywhere, and kept as it was sent',
    'What decodes': bomb,
    '`a.b.0`; a':
      'test/hooks/log/search.test.ts > text in any case, and a member of the JSON by its path',
    'Values are':
      'test/hooks/log/search.test.ts > text in any case, and a member of the JSON by its path',
    '**Reads that':
      'test/hooks/log/search.test.ts > searches of a page of this site, links that are followed, programs',
    'Programs need':
      'test/hooks/log/search.test.ts > searches of a page of this site, links that are followed, programs',
    '**Receivers** take':
      'test/hooks/receive/receivers.test.ts > a slash at the end is the same address',
    'A token may': TOKEN_PLACES,
    '**410** from':
      'test/hooks/send/destinations.test.ts > 410 disables at once; an address that became private is tried again',
    '`http` follows':
      'test/ops/watch/checks-network.test.ts > http: redirects are followed, and what the check sends goes to its own origin',
    'Each check begins':
      'test/ops/watch/check-loop.test.ts > two hundred checks that hang hold up no other one',
    'A heartbeat fails':
      'test/ops/watch/beats.test.ts > silence, and an end that does not come, are failures',
    'After a stop':
      'test/ops/watch/beats.test.ts > what fell due while nothing listened has its grace once more',
    'The first of':
      'test/ops/notices-time.test.ts > a storm is one message, and what goes on is one in five minutes',
    'Each notice': 'test/ops/notices-time.test.ts > each has its own row',
    'PagerDuty gets':
      'test/ops/notices-time.test.ts > PagerDuty has ten incidents of their own and one for the rest',
    'Labels of':
      'test/ops/alerts/alert-senders.test.ts > a group without common labels, and what comes late or twice',
    'A silence matches': 'test/ops/alerts/silences.test.ts > what matches',
    'A delivery older':
      'test/ops/alerts/alert-senders.test.ts > a group without common labels, and what comes late or twice',
    'A target has': 'test/links/names/input.test.ts > url',
    '`LINKS_SCHEMES` names':
      'test/links/names/input.test.ts > urls of the schemes that LINKS_SCHEMES names',
    'Previews and':
      'test/links/names/lifecycle.test.ts > previews of chats and what is loaded ahead use up none',
    '**Bodies of PUT**':
      'test/kernel/unknown-members.test.ts > what GET gives, PUT takes: read-only members are unchanged, or refused',
    'A page that':
      'test/browser/console.test.ts > ten windows share a stream, and a hidden one needs none',
    '**First release.**': unbound('it is about releases to come'),
  },
}
