import { objectOf, type JsonObject } from '../../../../kernel/json.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import { placesOf } from './schemes.ts'

/** A delivery as a sender makes it, not signed yet. */
export interface Sample {
  /** Of the delivery; new each time. */
  id: string
  type: string
  headers: Readonly<Record<string, string>>
  body: Buffer
}

/** What differs from one scheme's deliveries to another's. */
type Content = Pick<Sample, 'type'> & { body: JsonObject }

type Provider = Parameters<typeof placesOf>[0]

/**
 * A made-up delivery of a provider with a scheme, new each time, so that it is never taken for a
 * repeat.
 */
export function makeSample(provider: Provider, at: Date, random: RandomBytes): Sample {
  const id = random(12).toString('hex')
  const make = SAMPLES[provider.scheme ?? ''] ?? hello
  const { type, body } = make(id, at, random)
  const places = placesOf(provider)
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'gatehouse-send-sample',
    ...Object.fromEntries(places.type.headers.map((name) => [name, type])),
    ...Object.fromEntries(places.id.headers.map((name) => [name, id])),
  }
  // Where an operator or a sender of any kind has the member, it is not there yet.
  const isOwn = (provider.scheme ?? '') in SAMPLES
  const typePath = provider.scheme_row?.type?.json ?? (isOwn ? [] : places.type.json)
  const typed = withMember(body, typePath[0], type)
  const sent = withMember(typed, isOwn ? undefined : places.id.json[0], id)
  return { id, type, headers, body: Buffer.from(JSON.stringify(sent)) }
}

/** An object with a member at a path such as `a.b`. */
function withMember(object: JsonObject, path: string | undefined, value: string): JsonObject {
  if (path === undefined) return object
  const [first = '', ...rest] = path.split('.')
  const inner =
    rest.length === 0 ? value : withMember(objectOf(object[first]), rest.join('.'), value)
  return { ...object, [first]: inner }
}

const SAMPLES: Readonly<Record<string, typeof push>> = {
  github: push,
  gitea: push,
  gitlab: pushHook,
  stripe: payment,
  slack: mention,
  shopify: order,
  linear: issue,
}

function hello(_id: string, at: Date): Content {
  const body = { message: 'Hello from gatehouse send-sample', sent_at: at, answer: 42, ok: true }
  return { type: 'sample.sent', body }
}

function order(id: string, at: Date): Content {
  const line = { title: 'Lantern', quantity: 2, price: '21.00' }
  const money = { currency: 'EUR', total_price: '42.00' }
  const body = { name: `#${id.slice(0, 4)}`, created_at: at, ...money, line_items: [line] }
  return { type: 'orders/create', body }
}

function issue(id: string, at: Date): Content {
  const data = { id, title: 'The portcullis squeaks', priority: 2, createdAt: at }
  const event = { action: 'create', type: 'Issue', createdAt: at, data }
  return { type: 'Issue', body: { ...event, webhookTimestamp: at.getTime() } }
}

function pushHook(_id: string, _at: Date, random: RandomBytes): Content {
  const [before, after] = [random(20).toString('hex'), random(20).toString('hex')]
  const project = { name: 'drawbridge', path_with_namespace: 'castle/drawbridge' }
  const event = { object_kind: 'push', event_name: 'push', before, after, project }
  return {
    type: 'Push Hook',
    body: { ...event, ref: 'refs/heads/main', user_name: 'Rosa Keeper', total_commits_count: 1 },
  }
}

function push(_id: string, at: Date, random: RandomBytes): Content {
  const [before, after] = [random(20).toString('hex'), random(20).toString('hex')]
  const site = 'https://code.example.com/castle/drawbridge'
  const author = { name: 'Rosa Keeper', email: 'rosa@example.com', username: 'rosa' }
  const commit = {
    id: after,
    message: 'Raise the bridge at dusk',
    timestamp: at,
    url: `${site}/commit/${after}`,
    author,
    added: ['bridge/schedule.toml'],
    removed: [],
    modified: ['README.md'],
  }
  return {
    type: 'push',
    body: {
      ref: 'refs/heads/main',
      before,
      after,
      compare: `${site}/compare/${before.slice(0, 12)}...${after.slice(0, 12)}`,
      created: false,
      deleted: false,
      forced: false,
      commits: [commit],
      head_commit: commit,
      repository: {
        id: 4201,
        name: 'drawbridge',
        full_name: 'castle/drawbridge',
        private: true,
        html_url: site,
        default_branch: 'main',
        owner: { login: 'castle', type: 'Organization' },
      },
      pusher: { name: author.username, email: author.email },
      sender: { login: author.username, id: 77, type: 'User' },
    },
  }
}

function payment(id: string, at: Date): Content {
  const type = 'payment_intent.succeeded'
  const created = Math.floor(at.getTime() / 1000)
  const object = {
    id: `pi_${id}`,
    object: 'payment_intent',
    amount: 4200,
    amount_received: 4200,
    currency: 'eur',
    created,
    description: 'Toll for one cart and two horses',
    metadata: { order: '1042' },
    status: 'succeeded',
  }
  return {
    type,
    body: {
      id: `evt_${id}`,
      object: 'event',
      type,
      created,
      livemode: false,
      pending_webhooks: 1,
      data: { object },
    },
  }
}

function mention(id: string, at: Date): Content {
  const event_time = Math.floor(at.getTime() / 1000)
  const ts = `${event_time}.000100`
  const event = {
    type: 'app_mention',
    user: 'U0ROSA',
    text: '<@U0GATE> who goes there?',
    channel: 'C0COURTYARD',
    ts,
    event_ts: ts,
  }
  return {
    type: event.type,
    body: {
      type: 'event_callback',
      team_id: 'T0CASTLE',
      api_app_id: 'A0GATE',
      event_id: `Ev${id}`,
      event_time,
      event,
    },
  }
}
