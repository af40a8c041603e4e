import type { RandomBytes } from '../../kernel/tokens.ts'

/** A delivery as a sender makes it, not signed yet. */
export interface Sample {
  /** Of the delivery; new each time. */
  readonly id: string
  readonly type: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** A made-up delivery of a provider, new each time, so that it is never taken for a repeat. */
export function makeSample(provider: string, at: Date, random: RandomBytes): Sample {
  const id = random(12).toString('hex')
  if (provider === 'code_host') return push(id, at, random)
  if (provider === 'payments') return payment(id, at)
  if (provider === 'chat') return mention(id, at)
  const headers = { 'x-event-type': 'sample.sent', 'webhook-id': id }
  const body = { message: 'Hello from gatehouse send-sample', sent_at: at, answer: 42, ok: true }
  return sample(id, 'sample.sent', headers, body)
}

function sample(id: string, type: string, headers: Sample['headers'], body: unknown): Sample {
  const usual = { 'content-type': 'application/json', 'user-agent': 'gatehouse-send-sample' }
  return { id, type, headers: { ...usual, ...headers }, body: Buffer.from(JSON.stringify(body)) }
}

function push(id: string, at: Date, random: RandomBytes): Sample {
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
  return sample(
    id,
    'push',
    { 'x-github-event': 'push', 'x-github-delivery': id },
    {
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
  )
}

function payment(id: string, at: Date): Sample {
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
  return sample(
    id,
    type,
    {},
    {
      id: `evt_${id}`,
      object: 'event',
      type,
      created,
      livemode: false,
      pending_webhooks: 1,
      data: { object },
    },
  )
}

function mention(id: string, at: Date): Sample {
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
  return sample(
    id,
    'app_mention',
    {},
    {
      type: 'event_callback',
      team_id: 'T0CASTLE',
      api_app_id: 'A0GATE',
      event_id: `Ev${id}`,
      event_time,
      event,
    },
  )
}
