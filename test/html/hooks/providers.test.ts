import { t } from 'tap'
import { providerCard } from '../../../html/hooks/provider-card.ts'
import { providersFragment, providersPage } from '../../../html/hooks/providers.ts'
import type { ProvidersView } from '../../../html/hooks/views.ts'
import { render } from '../../../kernel/html.ts'
import { card, ESCAPED, HOSTILE } from './samples.ts'

function view(changes: Partial<ProvidersView> = {}): ProvidersView {
  return {
    cards: [card()],
    baseUrl: 'http://h',
    canSign: true,
    made: null,
    refused: null,
    ...changes,
  }
}

t.test('page, fragment and card are made of the same parts', async (t) => {
  const fragment = render(providersFragment(view()))
  t.ok(render(providersPage(view())).includes(fragment))
  t.ok(fragment.includes(render(providerCard(card()))))
})

t.test('the switch says its state and posts the other one', async (t) => {
  const off = render(providerCard(card()))
  t.match(off, /aria-checked="false"[^>]*value="true"/)
  t.match(off, />\s*Disabled\s*</)
  const on = render(providerCard(card({ enabled: true })))
  t.match(on, /aria-checked="true"[^>]*value="false"/)
  t.match(on, 'action="/providers/generic%3Aci/enabled"')
})

t.test('a missing secret names its variable and blocks the switch', async (t) => {
  const chat = card({ name: 'chat', trust_mode: 'signed', secret_status: 'missing' })
  const text = render(providerCard({ ...chat, variable: 'HOOKS_CHAT_SECRET' }))
  t.match(text, '<code>HOOKS_CHAT_SECRET</code>')
  t.match(text, /value="true"\s+disabled/)
  t.notMatch(text, '/remove', 'signed providers are part of the program')
})

t.test('a hostile queue name stays text and one path segment', async (t) => {
  const text = render(
    providerCard(card({ name: `queue:${HOSTILE}/../x`, family: 'queue', channel: HOSTILE })),
  )
  t.match(text, ESCAPED)
  t.notMatch(text, '<script')
  t.match(text, /action="\/providers\/queue%3A[^"/]+\/enabled"/)
})

t.test('rejections are counted, explained and linked', async (t) => {
  const rejections = {
    provider: 'generic:ci',
    total: 12,
    last_at: new Date(0),
    last_reason: 'stale by 400 s',
  }
  const text = render(providerCard({ ...card(), rejections }))
  t.match(text, 'href="/log?rejected=1&amp;provider=generic%3Aci"')
  t.match(text, 'last: stale by 400 s')
})

t.test('a token is shown where one was made, and only there', async (t) => {
  const url = 'http://h/webhooks/generic/ci'
  const made = {
    name: 'generic:ci',
    trust_mode: 'token',
    token: 'tok-en',
    url,
    rotated: false,
  } as const
  t.match(render(providersFragment(view({ made }))), 'Authorization: Bearer tok-en')
  t.notMatch(render(providersFragment(view({ made: { ...made, token: null } }))), 'Authorization')
  t.notMatch(render(providersFragment(view())), 'id="made"')
})

t.test('a refused form keeps what was typed', async (t) => {
  const refused = { name: 'x"y', trust_mode: 'open', message: 'The name is taken.' }
  const text = render(providersFragment(view({ refused })))
  t.match(text, 'value="x&quot;y"')
  t.match(text, /value="open"\s+checked/)
  t.match(text, /aria-invalid="true"/)
  t.match(text, 'The name is taken.')
})
