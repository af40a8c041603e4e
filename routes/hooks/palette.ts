import Type from 'typebox'
import { hooksPlaces } from '../../html/hooks/layout.ts'
import { hasWords, idIn, MAX_PLACES, paletteView, type PlaceGroup } from '../../html/palette.ts'
import { sizeText, timeTag } from '../../html/parts.ts'
import { html } from '../../kernel/html.ts'
import { withDefault } from '../../kernel/validate.ts'
import { listDestinations } from '../../services/hooks/destinations/destinations.ts'
import { findEventStart } from '../../services/hooks/events/detail.ts'
import { readProviders } from '../../services/hooks/providers.ts'
import { page, type HooksRoutes } from './kit.ts'

const PATH = '/palette'

/** What the palette finds: pages and actions, an event by its id, providers, destinations. */
export const paletteEndpoints = [
  page({
    path: PATH,
    query: Type.Object({ q: withDefault(Type.String(), '') }),
    async answer({ app, query, now }) {
      const text = query.q.trim()
      const things = text === '' ? [] : await findThings(app, text, now)
      return paletteView(PATH, text, [...hooksPlaces(app.services(), text), ...things])
    },
  }),
]

async function findThings(
  { hooks: { db } }: HooksRoutes,
  text: string,
  now: Date,
): Promise<readonly PlaceGroup[]> {
  const id = idIn(text)
  const [event, providers, destinations] = await Promise.all([
    id === undefined ? undefined : findEventStart(db, id, 0),
    readProviders(db, now),
    listDestinations(db, null, 0),
  ])
  return [
    { title: 'Events', places: event === undefined ? [] : [eventPlace(event)] },
    { title: 'Providers', places: named(providers, text, '/providers?open=') },
    { title: 'Destinations', places: named(destinations, text, '/destinations/') },
  ]
}

function eventPlace({ event }: NonNullable<Awaited<ReturnType<typeof findEventStart>>>) {
  const { id, event_type, provider, received_at, payload_size } = event
  return {
    href: `/log/${id}`,
    label: html`Event ${id}: <bdi>${event_type ?? 'no type'}</bdi>`,
    detail: html`<bdi>${provider}</bdi> · ${timeTag(received_at)} · ${sizeText(payload_size)}`,
  }
}

function named(rows: readonly { name: string }[], text: string, path: string) {
  const found = rows.filter(({ name }) => hasWords(name, text)).slice(0, MAX_PLACES)
  return found.map(({ name }) => ({ href: path + encodeURIComponent(name), label: name }))
}
