import type { EventView } from '../../../html/hooks/event.ts'
import type { LogFilter } from '../../../html/hooks/log-url.ts'
import type { LogView } from '../../../html/hooks/log/events/list.ts'
import type { ProviderCard } from '../../../html/hooks/receive/providers/shown.ts'
import type { EventRow } from '../../../services/hooks/log/events/previews.ts'
import { hooksFrame } from '../../../html/hooks/layout.ts'
import { render } from '../../../kernel/html.ts'
import type { Page } from '../../../kernel/http/view.ts'

/** A page as a browser gets it. */
export function shown(page: Page): string {
  return render(hooksFrame(page, []))
}

export const HOSTILE = '</code></pre><script>alert("1")</script>\'&'
export const ESCAPED =
  '&lt;/code&gt;&lt;/pre&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;'

export const summary: EventRow = {
  id: 42,
  provider: 'generic:ci',
  event_type: 'build.done',
  trust_mode: 'token',
  verified: false,
  payload_size: 2150,
  received_at: new Date('2026-05-04T08:30:00.000Z'),
  preview: { parts: ['a: 1'] },
}

/** The log without a filter. */
export const NO_FILTER: LogFilter = {
  provider: '',
  event_type: '',
  since: '',
  until: '',
  verified: '',
  header: '',
  limit: 50,
  text: '',
  json: '',
  rejected: '',
}

export function logView(changes: Partial<LogView> = {}): LogView {
  return {
    filter: NO_FILTER,
    typed: { q: '', when: '', from: '', to: '', zone: '' },
    counted: undefined,
    below: false,
    searchedTo: null,
    providers: ['code_host', 'generic:ci'],
    types: ['build.done'],
    events: [summary],
    position: 42,
    open: 0,
    searches: [],
    query: '',
    next: '/log?cursor=abc&limit=1',
    ...changes,
  }
}

export function eventView(changes: Partial<EventView['event']> = {}): EventView {
  const event: EventView['event'] = {
    ...summary,
    verify_detail: 'token ok',
    external_id: null,
    content_type: 'application/json',
    source_ip: '192.0.2.7',
    headers: { authorization: '«redacted»' },
    attempts: 1,
    payload: '{"a":1}',
    payload_encoding: 'utf8',
    ...changes,
  }
  return {
    event,
    request: {
      method: 'POST',
      path: '/webhooks/generic/ci',
      query: null,
      headers: Object.entries(event.headers),
    },
    tab: 'payload',
    recentTargets: [],
    receivers: [],
    connected: [],
    laptop: 'gatehouse forward http://127.0.0.1:3000/ --since 42',
    neighbours: { previous: 41, next: null, previous_of_provider: 40, next_of_provider: null },
    omittedBytes: 0,
    isReadingCut: false,
    text: event.payload,
    unreadable: undefined,
    outline: undefined,
    isRaw: false,
    tree: undefined,
    pretty: '{\n  "a": 1\n}',
    sameBody: null,
    subscription: null,
    hasUnsignedType: false,
    defaultTarget: null,
    replays: [],
    curl: "curl -X POST 'http://127.0.0.1:8080/webhooks/generic/ci'",
  }
}

export function card(changes: Partial<ProviderCard> = {}): ProviderCard {
  return {
    name: 'generic:ci',
    family: 'webhook',
    trust_mode: 'token',
    scheme: null,
    scheme_row: null,
    methods: null,
    answer: null,
    senderTitle: null,
    schemeNote: null,
    isGiven: false,
    enabled: false,
    secret_status: 'configured',
    path: '/webhooks/generic/ci',
    channel: null,
    recent_count: 3,
    last_event_at: null,
    rejection_burst: null,
    rejections: undefined,
    recoveries: [],
    url: 'http://127.0.0.1:8080/webhooks/generic/ci',
    variable: null,
    isConfigured: false,
    isStored: true,
    canSign: true,
    lastSecret: null,
    previous_until: null,
    rotatedAt: '',
    overlaps: [['0', 'no longer']],
    overlap: '0',
    interval: null,
    firing: [],
    ...changes,
  }
}
