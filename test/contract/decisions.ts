import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { apiOf } from '../helpers/api.ts'
import { addProvider, post } from '../helpers/hooks.ts'
import type { Ack } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { ROOT } from '../helpers/program.ts'
import { refuses } from '../helpers/refusals.ts'
import type { TestServer } from '../helpers/server.ts'
import { elsewhere, unbound } from './frame.ts'
import type { Check, Contract } from './frame.ts'

type ServerCheck = Check<TestServer>

const ACCESS = 'test/cli/access.test.ts'
const AGENTS = 'test/ops/agent/cli-agents.test.ts'
const ALERTS = 'test/ops/alerts/alerts.test.ts'
const ANSWERS = 'test/hooks/receive/answers.test.ts'
const BEATS = 'test/ops/watch/beats.test.ts'
const BODIES = 'test/hooks/log/bodies.test.ts'
const BRIEFS = 'test/ops/alerts/webhook-briefs.test.ts'
const CHECK = 'test/cli/check.test.ts'
const CHECKS = 'test/ops/watch/checks-network.test.ts'
const CLICKS = 'test/links/visits/clicks.test.ts'
const CONFIGURATION = 'test/cli/configuration.test.ts'
const CONTROL = 'test/cli/control.test.ts'
const CRASH = 'test/faults/embedded-crash.test.ts'
const DATA = 'test/ops/data.test.ts'
const DESTINATIONS = 'test/hooks/send/destinations.test.ts'
const DOCUMENT = 'test/house/docs.test.ts'
const ENDPOINT = 'test/ops/agent/model-endpoint.test.ts'
const EVENT = 'test/hooks/log/event-page.test.ts'
const GUARDS = 'test/hooks/guards.test.ts'
const HOOKS_API = 'test/hooks/api.test.ts'
const INGEST = 'test/hooks/receive/ingest.test.ts'
const INPUT = 'test/links/names/input.test.ts'
const LINK = 'test/links/names/links.test.ts'
const LINKS_ACCESS = 'test/links/access.test.ts'
const LINKS_API = 'test/links/api.test.ts'
const LISTS = 'test/links/names/lists.test.ts'
const LOG = 'test/hooks/log/log.test.ts'
const LOOP = 'test/ops/watch/check-loop.test.ts'
const MCP = 'test/hooks/agents/mcp.test.ts'
const MCP_TOOLS = 'test/hooks/agents/mcp-tools.test.ts'
const MIGRATE = 'test/db/migrate.test.ts'
const MODEL = 'test/ops/agent/model.test.ts'
const NAMES = 'test/links/names/names.test.ts'
const OPS_API = 'test/ops/api.test.ts'
const OPS_PAGES = 'test/ops/pages.test.ts'
const PAGES = 'test/hooks/pages.test.ts'
const PEOPLE = 'test/links/people/people.test.ts'
const PROBE = 'test/ops/agent/probe.test.ts'
const PROVIDERS = 'test/hooks/receive/providers.test.ts'
const PROXIES = 'test/kernel/proxy-signs.test.ts'
const QUEUE = 'test/hooks/agents/queue.test.ts'
const READING = 'test/ops/alerts/webhook-reading.test.ts'
const RECEIVERS = 'test/hooks/receive/receivers.test.ts'
const REJECTIONS = 'test/hooks/receive/rejections.test.ts'
const REPLAY = 'test/hooks/send/replay.test.ts'
const RESOLVER = 'test/links/visits/resolver.test.ts'
const SANDBOX = 'test/ops/agent/tools-sandbox.test.ts'
const SCHEMES = 'test/hooks/receive/schemes.test.ts'
const SEARCH = 'test/hooks/log/search.test.ts'
const SECRET_KEY = 'test/cli/secret-key.test.ts'
const SENDERS = 'test/ops/alerts/alert-senders.test.ts'
const SERVE = 'test/cli/serve.test.ts'
const SESSIONS = 'test/ops/agent/api-sessions.test.ts'
const SETTINGS = 'test/hooks/settings.test.ts'
const SIGNATURES = 'test/hooks/receive/signatures.test.ts'
const STORMS = 'test/ops/notices-time.test.ts'
const STREAM = 'test/hooks/log/stream.test.ts'
const TOKENS = 'test/links/people/tokens.test.ts'
const WATCHDOG = 'test/faults/watchdog.test.ts'
const WEBHOOK = 'test/ops/alerts/webhook.test.ts'

const ABOUT = unbound('it is about the documents')
const INSIDE = unbound('it is how the program is built')
const REASON = unbound('it says why')

const VARIABLE = elsewhere(
  DOCUMENT,
  'the page on settings has every variable as the program declares it',
)
const WORDS = elsewhere(
  'test/cli/usage.test.ts',
  'the man pages have every command, flag and variable',
)
const WRONG_WORDS = elsewhere('test/cli/usage.test.ts', 'each command, typed wrong in five ways')
const PEOPLE_COMMANDS = elsewhere(ACCESS, 'users and tokens: two commands, then the first request')
const OWN_NAMES = elsewhere(GUARDS, 'pages answer to our own names only')
const ANY_NAME = elsewhere(GUARDS, 'receivers and the probe answer to any name')
const HEADERS = elsewhere(GUARDS, 'every answer carries its protective headers')
const BEYOND = elsewhere(GUARDS, 'an address beyond loopback needs a trusted proxy')
const PROXIED = elsewhere(PROXIES, 'guarded routes refuse it and say what to set')
const BOTH_FORMS = elsewhere(
  SETTINGS,
  'without script: the page, or the refusal on the whole page',
)
const LOOK = elsewhere(CHECK, 'nothing is created by looking')
const ORDER = elsewhere(RECEIVERS, 'the checks have an order')
const SPELLINGS = elsewhere(
  RECEIVERS,
  'both spellings of the headers verify, and the neutral one wins',
)
const HANDSHAKE = elsewhere(
  RECEIVERS,
  'a handshake is verified first, then echoed, and stored never',
)
const TOKEN_PLACES = elsewhere(RECEIVERS, 'a token is taken from where senders put it')
const TOKEN_IN_ADDRESS = elsewhere(RECEIVERS, 'a token in an address is stored as a mark')
const PROVIDER_MADE = elsewhere(
  PROVIDERS,
  'a token is made, shown once, and only its hash is stored',
)
const STANDARD = elsewhere(SCHEMES, 'Standard Webhooks: what fails is 403, and the reason is kept')
const ENCRYPTED = elsewhere(
  SCHEMES,
  'secrets are stored encrypted; with another key the sender is disabled',
)
const PRIVATE_TARGETS = elsewhere(REPLAY, 'what is not on the public internet must be allowed')
const LISTED = elsewhere(LISTS, 'pages of every list')
const OWNERS = elsewhere(PEOPLE, 'owners and shares: who adds and removes whom')
const SHOWN_ONCE = elsewhere(TOKENS, 'a token is shown once, and listed to its user alone')
const SCOPES = elsewhere(TOKENS, 'a token does what its scope has')
const OPERATOR = elsewhere(LINKS_ACCESS, 'the local operator')
const SESSION_INPUT = elsewhere(SESSIONS, 'what is refused, and begins nothing')
const CHAIN = elsewhere(SESSIONS, 'escalation from tier 1 to 3')
const RUNNER = elsewhere(ENDPOINT, 'the environment file chooses the runner for each session')
const TIERS = elsewhere(
  MODEL,
  'each tier has its tools and its model; without a price the cost is null',
)
const BUDGET = elsewhere(ENDPOINT, 'a spent budget of the session, its chain or the day')
const LIMITS = elsewhere(
  'test/ops/agent/cooldowns-limits.test.ts',
  'defaults: 2 restarts in 4 h for each service, 1 redeployment in 24 h',
)
const TIMES = elsewhere(
  'test/ops/agent/deadlines.test.ts',
  'a session without a first output is timed out',
)
const KEPT = elsewhere(DATA, 'what is old is removed or fades at the start, and nothing else')
const ALERT_KEPT = elsewhere(BRIEFS, '502 when there is no brief: the alert is kept')
const GROUPS = elsewhere(WEBHOOK, 'real senders: what is grouped, and what it is called')
const TOLD = elsewhere(
  'test/ops/notices.test.ts',
  'a critical check is told when it fails, and when it is good again',
)
const NOTIFIED = elsewhere(
  'test/cli/notify.test.ts',
  'the running service sends to it, beside OPS_NOTIFY_URL',
)
const TEXT_ACTS = elsewhere(
  ENDPOINT,
  'a call in a text acts in no spelling, whatever the model does with it',
)
const CLOCK = elsewhere(
  'test/hooks/clock.test.ts',
  'lists keep the order of ids, and times are found',
)
const UNKNOWN = 'test/kernel/unknown-members.test.ts'
const ACTORS = elsewhere(
  'test/hooks/audit.test.ts',
  'providers, endpoints and settings: each change, by each kind of actor',
)
const FOREIGN = elsewhere(GUARDS, 'no page of another site loads one unseen')
const LIVE = elsewhere(CONFIGURATION, 'what counts at once, and what waits for the next start')
const OLD_DATABASE = elsewhere(
  MIGRATE,
  'a database that does not fit is refused by every command in one line',
)

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
    const { id } = (await post(hooks, 'generic/bombs', body, zipped)).json<Ack>()
    type Found = { readonly events: readonly unknown[] }
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
    'The specs reuse paths': elsewhere(SERVE, 'one line says that it is ready, and where'),
    '`serve` starts': elsewhere(SERVE, 'one line says that it is ready, and where'),
    'Program name': WORDS,
    'Commands:': WORDS,
    '`--json` gives': elsewhere(ACCESS, 'lists of providers and endpoints, and what is refused'),
    'Exit codes:': WRONG_WORDS,
    'A secret that a command makes': PEOPLE_COMMANDS,
    '`provider add NAME': WORDS,
    'The embedded database belongs': elsewhere(CRASH, 'a directory has one user at a time'),
    'While `serve` runs': elsewhere(CONTROL, 'commands beside a server on the embedded engine'),
    'Every command that opens': LOOK,
    'Configuration:': elsewhere(
      CONFIGURATION,
      'flag over environment file over environment over default',
    ),
    '`--env-file FILE`': elsewhere(
      CONFIGURATION,
      'a changed environment file counts without a restart; a broken one changes nothing',
    ),
    'A secret variable': elsewhere(
      CONFIGURATION,
      'a secret is its whole value, of a credential without its last newline',
    ),
    '`DATABASE_URL` |': VARIABLE,
    '`GATEHOUSE_DATA_DIR` |': VARIABLE,
    '`HOOKS_ADDR`,': VARIABLE,
    '`HOOKS_BASE_URL`,': elsewhere(LINKS_API, 'addresses and keyword come from the configuration'),
    '`GATEHOUSE_TRUSTED_PROXIES` |': elsewhere(GUARDS, 'a trusted proxy names the source'),
    '`GATEHOUSE_USER_HEADER` |': elsewhere(LINKS_ACCESS, 'who is believed'),
    '`HOOKS_CODE_HOST_SECRET`,': VARIABLE,
    'the same with': elsewhere(
      'test/hooks/receive/rotation.test.ts',
      'the current and the previous secret of the configuration verify',
    ),
    '`GATEHOUSE_SECRET_KEY` |': ENCRYPTED,
    '`HOOKS_MAX_BODY` |': elsewhere(INGEST, 'the limit itself is accepted, a byte more is not'),
    '`HOOKS_FRESHNESS_S` |': elsewhere(
      SIGNATURES,
      'the freshness window is inclusive in both directions',
    ),
    '`HOOKS_QUEUE_URL`,': elsewhere(QUEUE, 'one variable alone is logged, and no queue is read'),
    '`HOOKS_REPLAY_TARGETS` |': PRIVATE_TARGETS,
    '`LINKS_SHORT_KEYWORD` |': elsewhere(
      LINKS_API,
      'addresses and keyword come from the configuration',
    ),
    '`OPS_CHAT_API_KEY`,': elsewhere(
      BRIEFS,
      'model, prompt and endpoint are looked up on every request',
    ),
    '`OPS_MODEL_URL`,': VARIABLE,
    '`OPS_TIER1_MODEL`,': VARIABLE,
    '`OPS_INTERVAL`,': elsewhere(OPS_API, 'what was saved wins over the settings of a new start'),
    '`OPS_STATE_DIR`,': VARIABLE,
    '`OPS_RUNNER`,': RUNNER,
    '`OPS_SESSION_BUDGET_USD`,': BUDGET,
    '`OPS_FIRST_OUTPUT_S`,': VARIABLE,
    '`OPS_NOTIFY_URL` |': VARIABLE,
    'Beyond loopback:': BEYOND,
    'A unix socket counts': elsewhere(SERVE, 'a unix socket serves like a port'),
    'On loopback the UIs': REASON,
    'hooks UI,': OWN_NAMES,
    'links UI': PROXIED,
    '`/webhooks/*`,': ANY_NAME,
    'redirects,': elsewhere(PROXIES, 'on open routes it brings nobody'),
    'All responses:': HEADERS,
    'Each response carries': elsewhere(PAGES, 'the answer’s id is that of its log line'),
    'HEAD works': elsewhere(LINKS_API, 'HEAD is GET without its body'),
    'A form post answers': BOTH_FORMS,
    "A browser's own navigation": BOTH_FORMS,
    '`/metrics` (OpenMetrics': elsewhere(PAGES, 'GET /metrics'),
    'SIGTERM: stop accepting': elsewhere(
      'test/hooks/stop.test.ts',
      'signals while a request never ends',
    ),
  },
  '2. Data': {
    'One PostgreSQL schema': elsewhere(
      MIGRATE,
      'several processes migrate one empty database at once',
    ),
    'Embedded default:': INSIDE,
    'It must be durable': elsewhere('test/faults/hooks-crash.test.ts', 'kill -9 under load'),
    'The embedded engine serves': elsewhere(
      'test/cli/db-move.test.ts',
      'an embedded database moves to a server',
    ),
    'Every figure that must': elsewhere(
      CRASH,
      'a disk that fails ends the engine and acknowledges nothing',
    ),
    'Several instances': elsewhere(
      'test/links/instances.test.ts',
      'a change counts on the other server',
    ),
    'Timestamps:': elsewhere(HOOKS_API, 'an event, and its bytes'),
  },
  '3. hooks': {
    'Signed: unknown': ORDER,
    'Generic: unknown': elsewhere(
      RECEIVERS,
      'disabled comes before the length, and that before the token',
    ),
    'On signed receivers': elsewhere(RECEIVERS, 'forms are read as forms when their type says so'),
    '`/log/{id}` with': noNumber,
    'Of several presented tokens': elsewhere(
      RECEIVERS,
      'of several tokens the first place decides',
    ),
    'Lower-case hex': elsewhere(
      SIGNATURES,
      'a signature or a time that is not as its scheme writes it is malformed',
    ),
    '`payments`: exactly': elsewhere(
      SIGNATURES,
      'payments: one time of digits, any number of v1, decoys ignored',
    ),
    '`code_host` |': SPELLINGS,
    '`payments` |': SPELLINGS,
    '`chat` |': SPELLINGS,
    '`generic:<name>` |': elsewhere(RECEIVERS, 'delivery ids come from three headers, in order'),
    "A signed provider's delivery": elsewhere(
      INGEST,
      'without an id the body stands for it, at signed receivers',
    ),
    '`external_id` is unique': elsewhere(
      INGEST,
      'a repeat later, also with another body, changes nothing',
    ),
    '`verify_detail`:': elsewhere(EVENT, 'everything that is known of an event, and its bytes'),
    'A `url_verification`': HANDSHAKE,
    'Order:': TOKEN_PLACES,
    'Only SHA-256': PROVIDER_MADE,
    'Names of signed': elsewhere(PROVIDERS, 'what is not created'),
    'An operator creates': PROVIDER_MADE,
    'It is created disabled': elsewhere(ACCESS, 'provider and endpoint beside a server'),
    'A generic provider of trust': STANDARD,
    '`secret_status`:': elsewhere(ACCESS, 'lists of providers and endpoints, and what is refused'),
    'Stored headers replace': elsewhere(RECEIVERS, 'secret headers are stored as a mark'),
    'The query string': TOKEN_IN_ADDRESS,
    'Nothing secret': elsewhere(
      RECEIVERS,
      'nothing secret stands in a log, a page, metrics or the database',
    ),
    '`source_ip` is': elsewhere(GUARDS, 'a trusted proxy names the source'),
    '**EventDetail.payload**': elsewhere(HOOKS_API, 'an event, and its bytes'),
    'The stored column': INSIDE,
    'Each 401/403/413': elsewhere(REJECTIONS, 'each refusal is one of a known kind'),
    'Shown on': elsewhere(REJECTIONS, 'all are listed, newest first, by network only'),
    '`event-received` carries': elsewhere(STREAM, 'head, retry and status come at once'),
    '`receiving` =': elsewhere(STREAM, 'head, retry and status come at once'),
    'Ids are visible': elsewhere(
      MCP_TOOLS,
      'a call after an acknowledged delivery shows it, under load',
    ),
    'Resume by': elsewhere(STREAM, 'resume by header, by query, and from now on'),
    'A client whose socket': elsewhere(
      'test/faults/hooks-stream-limits.test.ts',
      'a client that never reads is cut off, and nobody else notices',
    ),
    '`Cache-Control:': elsewhere(STREAM, 'head, retry and status come at once'),
    '`since` takes': elsewhere(LOG, 'what is refused'),
    'Full page': INSIDE,
    '**Settings**:': elsewhere(SETTINGS, 'the smallest values, absent fields, an empty target'),
    '**Health.** 200': elsewhere(
      'test/faults/hooks-outage.test.ts',
      'PostgreSQL goes away for a while',
    ),
    '`db` and': elsewhere('test/faults/hooks-outage.test.ts', 'PostgreSQL goes away for a while'),
    '`broker` is': elsewhere(QUEUE, 'one variable alone is logged, and no queue is read'),
    'Redis or Valkey': elsewhere(
      QUEUE,
      'entries of a dead consumer are taken over, trimmed ones skipped',
    ),
    'Payload = field': elsewhere(QUEUE, 'the field payload is the payload, byte for byte'),
    'Provider `queue': elsewhere(QUEUE, 'every stream is a provider with a channel'),
    'MCP over': elsewhere(MCP, '2025: handshake, ping, notifications, errors within a 200'),
    'An endpoint is': elsewhere(
      MCP,
      'the settings page makes an endpoint and shows its token once',
    ),
    'Tools:': elsewhere(MCP_TOOLS, 'the list of tools says what each takes, gives and does'),
    'Resource `gatehouse': elsewhere(MCP_TOOLS, 'a part of a payload says what it is'),
    'Error codes': elsewhere(MCP_TOOLS, 'each refusal has its code, and is counted'),
    '**Replay** (tool': PRIVATE_TARGETS,
    'Each attempt is': elsewhere(REPLAY, 'each attempt is kept, newest first, with its reason'),
    '**Forwarding** (': elsewhere(
      'test/hooks/send/relay.test.ts',
      'events go out in order, each when it is asked for',
    ),
  },
  '4. links': {
    'Lists:': LISTED,
    'Sort keys:': LISTED,
    '`limit` that': elsewhere(LISTS, 'what is no page, order or filter is refused'),
    'A cursor that': elsewhere(LISTS, 'what is no page, order or filter is refused'),
    'GET owners:': OWNERS,
    'POST owners:': elsewhere(PEOPLE, 'what is refused of owners and shares'),
    'DELETE owners:': elsewhere(PEOPLE, 'what is refused of owners and shares'),
    'A co-owner may': OWNERS,
    'Codes: 400': elsewhere(
      LINKS_API,
      'the document describes everything once, with the codes of each status',
    ),
    'Error texts': elsewhere(
      LINKS_API,
      '401 UNAUTHORIZED without a valid token, before anything else',
    ),
    'Order 401': elsewhere(LINKS_API, 'unknown paths, wrong methods, and what is for admins'),
    'PUT: `url`': elsewhere(INPUT, 'visibility and append_path'),
    '`visibility`:': elsewhere(LINKS_ACCESS, 'who is redirected'),
    'Optional on': elsewhere(INPUT, 'visibility and append_path'),
    'Visible to a caller': elsewhere(LISTS, 'who finds what'),
    'Shares:': OWNERS,
    'Tokens:': SHOWN_ONCE,
    'GET `{tokens:': SHOWN_ONCE,
    '`scope`:': SCOPES,
    'The API never': elsewhere(
      LINKS_API,
      'what is no valid token, and what does not stand for one',
    ),
    'Slug `^': elsewhere(INPUT, 'slug'),
    'Reserved exactly:': elsewhere(INPUT, 'slug'),
    'The UI lives': elsewhere(RESOLVER, 'no visit reaches what is reserved'),
    'One list,': INSIDE,
    'Limits: url': elsewhere(INPUT, 'tags'),
    'URL: `http`': elsewhere(INPUT, 'url'),
    'Resolver: `GET': elsewhere(RESOLVER, 'a redirect says what it must and nothing more'),
    'Exact, then': elsewhere(RESOLVER, 'a slug in every spelling leads to its link'),
    'Path pass-through:': elsewhere(RESOLVER, 'further segments and queries'),
    '`/{slug}+` previews.': elsewhere(
      LINKS_ACCESS,
      'the preview is a page that goes nowhere by itself',
    ),
    'Unknown: 404': elsewhere(RESOLVER, 'an unknown slug: what was meant, and a way to make it'),
    'HEAD is never': elsewhere(CLICKS, 'what counts, from where, and with what'),
    'Redirects come': elsewhere(
      'test/links/instances.test.ts',
      'a change counts on the other server',
    ),
    'Clicks are': elsewhere(CLICKS, 'stopped under load: what was answered is counted'),
    'UI sign-in:': OPERATOR,
    "A tag listing's": elsewhere(
      'test/links/names/hidden.test.ts',
      'an invisible tag is like one that does not exist, on every page',
    ),
    'Pages: my links': elsewhere(
      'test/links/pages-forms.test.ts',
      'made and changed: a browser goes to its page, by either way',
    ),
  },
  '5. ops': {
    'Session `status`:': elsewhere(SESSIONS, '201 for a trigger when none runs, and its end'),
    'Event `level`:': elsewhere(
      MODEL,
      'a session with a model: tools, events, memories, summary, cost',
    ),
    'Memory `category`:': elsewhere(OPS_API, 'what is added and listed'),
    '`interval` is': elsewhere(
      OPS_API,
      '400 for a bad field, and nothing of the others is applied',
    ),
    '`limit` over': elsewhere(OPS_API, 'events: newest first, 100 without a limit, 1,000 at most'),
    '`confidence` 0..1': elsewhere(OPS_API, 'what can not be added'),
    'PUT config': elsewhere(OPS_API, '400 for a bad field, and nothing of the others is applied'),
    'Operator memories': elsewhere(OPS_API, 'what is added and listed'),
    'A blank `prompt`': SESSION_INPUT,
    '`chain_cost` counts': CHAIN,
    '`exit_code`:': elsewhere(
      AGENTS,
      'an agent that ignores SIGINT and SIGTERM, and children in sessions of their own',
    ),
    'A spent budget': BUDGET,
    '`OPS_INVENTORY` (JSON': elsewhere(
      PROBE,
      'a wrong inventory stops the start, in one line that says where',
    ),
    'Without a file': elsewhere(PROBE, 'with nothing configured'),
    '`probe`, the': elsewhere(PROBE, 'the session at the start'),
    '`model` is': elsewhere(PROBE, 'the session at the start'),
    '`model`: our': elsewhere(
      MODEL,
      'a session with a model: tools, events, memories, summary, cost',
    ),
    '`cli`: a': elsewhere(
      AGENTS,
      'the agent gets an argument list, a bare environment and a folder of its own',
    ),
    '**Tools by tier**': TIERS,
    'Cooldown and dry-run': LIMITS,
    'Sandbox children': elsewhere(SANDBOX, 'commands run in bwrap where it works'),
    '`escalate {reason': CHAIN,
    'A partial unique': elsewhere(
      'test/ops/agent/one-session.test.ts',
      '30 starts at once on two servers: one session runs',
    ),
    'A running row': elsewhere(
      'test/ops/agent/one-session.test.ts',
      'what a server leaves that is killed, the next one fails, once',
    ),
    'Wall clock': TIMES,
    'Stop: SIGINT': elsewhere(
      AGENTS,
      'an agent that ignores SIGINT and SIGTERM, and children in sessions of their own',
    ),
    'The scheduler starts': elsewhere(
      'test/ops/agent/one-session.test.ts',
      'two schedulers start one session an interval',
    ),
    'Every line of': elsewhere(
      'test/ops/redaction.test.ts',
      'a secret that a model or a tool echoes is kept nowhere',
    ),
    '`/sessions/{id}/stream`:': elsewhere(
      'test/ops/agent/stream.test.ts',
      'two servers: cut off again and again, no hole and no repeat',
    ),
    'A finished session': elsewhere(
      'test/ops/agent/stream.test.ts',
      'a finished session is replayed, from anywhere, and closes',
    ),
    'Same service': elsewhere(
      MODEL,
      'seen again, a faded memory is active from 0.3 on, unless people put it to rest',
    ),
    'Active ones': elsewhere(
      MODEL,
      'memories in the prompt: the active ones, best first, 8,000 characters',
    ),
    'Order: key': elsewhere(WEBHOOK, '202 acknowledged while a session runs, without a model'),
    'Error body': ALERT_KEPT,
    '`tier`: an': elsewhere(BRIEFS, 'tier: read, clamped and taken out'),
    'Every delivery': ALERT_KEPT,
    'The fingerprint': GROUPS,
    'Generated from': elsewhere(
      OPS_API,
      'describes everything once, with its schemas by their names',
    ),
    'Links and hooks': documented,
    '`/` (state': elsewhere(OPS_PAGES, 'every page is a whole one'),
    'Form posts:': elsewhere(OPS_PAGES, 'trigger: 303, or the fragment'),
  },
  '6. Amendments': {
    'They win': ABOUT,
    'The three specs': ABOUT,
    'An unknown variable': elsewhere(
      CONFIGURATION,
      'an unknown variable in the environment is told of once, and stops nothing',
    ),
    'A peer is': INSIDE,
    'Only a unix': elsewhere(
      'test/kernel/peers-reset.test.ts',
      'a client that resets its connection is nobody',
    ),
    '**Signs of': PROXIED,
    'On guarded routes': PROXIED,
    '**Identity header**': elsewhere(LINKS_ACCESS, 'who is believed'),
    '`ETag` on': elsewhere(LINK, 'ETag and If-Match'),
    'The last admin': elsewhere(PEOPLE, 'the last admin stays one, and enabled'),
    'A loop that': elsewhere(NAMES, 'a loop does not tell where a secure link leads'),
    'An appended path': elsewhere(RESOLVER, 'further segments and queries'),
    'A scheme of': elsewhere(
      'test/hooks/receive/presets.test.ts',
      'checks of an address are answered as the sender asks, and not stored',
    ),
    'A secret is': elsewhere(
      SCHEMES,
      'a secret that the sender made is taken, and may come from a file',
    ),
    'Events may be': elsewhere(HOOKS_API, 'who may call'),
    'Within one process': elsewhere(
      'test/hooks/clock.test.ts',
      'a clock that is seconds behind is waited for',
    ),
    'SIGTERM during': elsewhere(
      READING,
      'a stop while alerts are read loses nothing, and starts nothing',
    ),
    'Identity of': GROUPS,
    'One synthesis': elsewhere(READING, 'parallel alerts: one model call at a time'),
    'Synthesis counts': elsewhere(READING, 'a brief counts against the budget of the day'),
    'Retention:': KEPT,
    'Allowed read-only': elsewhere(
      SANDBOX,
      'without a sandbox commands are off, and the log says so at the start',
    ),
    'Checks and operations': elsewhere(
      'test/ops/watch/checks.test.ts',
      'command: one that is told to end has the time for it',
    ),
    '`OPS_FIRST_OUTPUT_S` (60)': VARIABLE,
    'A non-integer': SESSION_INPUT,
    'A condition that': TOLD,
    'Nothing was released': OLD_DATABASE,
    '`npm test` short': unbound('it is about the tests'),
  },
  '7. Amendments': {
    'They win': ABOUT,
    'Contract texts': ABOUT,
    'Nothing is released': OLD_DATABASE,
    '`gatehouse check` fails': elsewhere(
      CHECK,
      'each wrong value has its line, and the rest is looked at',
    ),
    '**Variables** are': LIVE,
    'Order is by': CLOCK,
    '`received_at` is': CLOCK,
    "An event's type": elsewhere(INGEST, 'an event has the type that its delivery claims'),
    'The rule that': elsewhere(INGEST, 'an event has the type that its delivery claims'),
    '**Unknown members**': elsewhere(
      UNKNOWN,
      'hooks: each body is refused with 422 and the name of the member',
    ),
    'PUT config and': elsewhere(
      UNKNOWN,
      'links and ops take them where their contracts name the body',
    ),
    'A scheme may': elsewhere(
      'test/hooks/receive/presets.test.ts',
      'checks of an address are answered as the sender asks, and not stored',
    ),
    'Chosen answers and': elsewhere(
      ANSWERS,
      'unless chosen, a receiver takes POST alone and answers 202',
    ),
    '**Posts** of': BOTH_FORMS,
    'Without script': elsewhere(
      'test/browser/no-script.test.ts',
      'a provider: switched, made, rotated, removed',
    ),
    '**Chosen answers**': elsewhere(ANSWERS, 'the chosen answer: text, JSON or XML, in a sandbox'),
    '**New open paths**': elsewhere(BEATS, 'each method and each word of a job'),
    '`/mcp/ops` and': elsewhere('test/links/transfer/tools.test.ts', 'who may not call at all'),
    '**Secrets of': elsewhere(
      'test/hooks/receive/rotation.test.ts',
      'the environment wins, and the card says so',
    ),
    'One engine:': elsewhere(
      'test/hooks/send/replay-jobs.test.ts',
      'many events: the oldest first, two jobs beside each other',
    ),
    '`Idempotency-Key` and': elsewhere(
      DESTINATIONS,
      'the key of a delivery is that of its event and this installation',
    ),
    'A refused address': elsewhere(
      DESTINATIONS,
      '410 disables at once; an address that became private is tried again',
    ),
    '`CDN-Loop` is': elsewhere(DESTINATIONS, 'a delivery that comes back is stored once'),
    'A call that': TEXT_ACTS,
    'Once an endpoint': elsewhere(
      ENDPOINT,
      'once a model has called a tool by the protocol, its text is text',
    ),
    '**Checks** have': elsewhere(
      'test/ops/dashboard.test.ts',
      'what nobody has looked at is not well, anywhere',
    ),
    'The probe session': elsewhere(
      PROBE,
      'what is unknown is told once, with its end, and is no good news',
    ),
    '**A failing check**': elsewhere(
      'test/ops/alerts/investigations.test.ts',
      'what fails together starts one session',
    ),
    '**Notices** are': NOTIFIED,
    '`OPS_ALERT_MAX_TIER` (default': elsewhere(
      BRIEFS,
      'OPS_ALERT_MAX_TIER bounds senders, OPS_MAX_TIER everybody',
    ),
    "The contract's 502": elsewhere(
      BRIEFS,
      'OPS_BRIEF_FALLBACK: its session gets the alert itself',
    ),
    'The answer to': elsewhere(READING, 'Retry-After is obeyed within the deadline'),
    'A session ended': elsewhere(
      ALERTS,
      'an alert whose session ended with the server is read again',
    ),
    'Each change names': ACTORS,
    "Golink's folding": elsewhere(
      NAMES,
      'dashes and dots do not matter where no link has the name',
    ),
    '**Sign-in** stays': elsewhere(
      'test/deploy/proxies.test.ts',
      'pages ask who comes, whatever a visitor claims',
    ),
    'We ship recipes': elsewhere(
      'test/deploy/proxies.test.ts',
      'pages ask who comes, whatever a visitor claims',
    ),
    'What is read': elsewhere(
      ENDPOINT,
      'a model in a loop: its answer is read in one go, and bounded',
    ),
    'What is cut': elsewhere(BRIEFS, 'a long alert is cut, and where it is shown that is said'),
    'A worker beside': elsewhere(
      WATCHDOG,
      'after a long silence the process is ended, and nothing is lost',
    ),
    'The unit has': watched,
    '**Pages that read': FOREIGN,
    '**Query parameters**': elsewhere(OPS_API, 'what is added and listed'),
    "The receivers' paths": elsewhere(RESOLVER, 'further segments and queries'),
  },
  '8. Amendments': {
    'They win': ABOUT,
    'Contract texts': ABOUT,
    'Without `GATEHOUSE_SECRET_KEY`': elsewhere(
      SECRET_KEY,
      'the first start makes the key, and everything uses it',
    ),
    'The variable wins': elsewhere(
      SECRET_KEY,
      'instances on one database are told that their keys differ',
    ),
    'A database that': elsewhere(
      SECRET_KEY,
      'instances on one database are told that their keys differ',
    ),
    'Backups never': elsewhere(
      SECRET_KEY,
      'the first start makes the key, and everything uses it',
    ),
    'What a command': elsewhere(
      'test/links/instances.test.ts',
      'a change counts for the next visit to its server',
    ),
    'Verified and': elsewhere(
      BODIES,
      'a signed receiver verifies what was sent, and reads what was meant',
    ),
    'What is shown': elsewhere(
      BODIES,
      'a body is read the same way everywhere, and kept as it was sent',
    ),
    'What decodes': bomb,
    '`a.b.0`; a': elsewhere(SEARCH, 'text in any case, and a member of the JSON by its path'),
    'Values are': elsewhere(SEARCH, 'text in any case, and a member of the JSON by its path'),
    '**Reads that': elsewhere(
      SEARCH,
      'searches of a page of this site, links that are followed, programs',
    ),
    'Programs need': elsewhere(
      SEARCH,
      'searches of a page of this site, links that are followed, programs',
    ),
    '**Receivers** take': elsewhere(RECEIVERS, 'a slash at the end is the same address'),
    'A token may': TOKEN_PLACES,
    '**410** from': elsewhere(
      DESTINATIONS,
      '410 disables at once; an address that became private is tried again',
    ),
    '`http` follows': elsewhere(
      CHECKS,
      'http: redirects are followed, and what the check sends goes to its own origin',
    ),
    'Each check begins': elsewhere(LOOP, 'two hundred checks that hang hold up no other one'),
    'A heartbeat fails': elsewhere(BEATS, 'silence, and an end that does not come, are failures'),
    'After a stop': elsewhere(
      BEATS,
      'what fell due while nothing listened has its grace once more',
    ),
    'The first of': elsewhere(
      STORMS,
      'a storm is one message, and what goes on is one in five minutes',
    ),
    'Each notice': elsewhere(STORMS, 'each has its own row'),
    'PagerDuty gets': elsewhere(
      STORMS,
      'PagerDuty has ten incidents of their own and one for the rest',
    ),
    'Labels of': elsewhere(SENDERS, 'a group without common labels, and what comes late or twice'),
    'A silence matches': elsewhere('test/ops/alerts/silences.test.ts', 'what matches'),
    'A delivery older': elsewhere(
      SENDERS,
      'a group without common labels, and what comes late or twice',
    ),
    'A target has': elsewhere(INPUT, 'url'),
    '`LINKS_SCHEMES` names': elsewhere(INPUT, 'urls of the schemes that LINKS_SCHEMES names'),
    'Previews and': elsewhere(
      'test/links/names/lifecycle.test.ts',
      'previews of chats and what is loaded ahead use up none',
    ),
    '**Bodies of PUT**': elsewhere(
      UNKNOWN,
      'what GET gives, PUT takes: read-only members are unchanged, or refused',
    ),
    'A page that': elsewhere(
      'test/browser/console.test.ts',
      'ten windows share a stream, and a hidden one needs none',
    ),
    '**First release.**': unbound('it is about releases to come'),
  },
}
