import * as Type from '../../kernel/schema.ts'
import { filtersText } from '../../html/hooks/log/events/filter.ts'
import { hooksPlaces } from '../../html/hooks/layout.ts'
import { hasWords, idIn, MAX_PLACES, paletteView, type PlaceGroup } from '../../html/palette.ts'
import { sizeText, timeTag } from '../../html/parts.ts'
import { html } from '../../kernel/html.ts'
import { withDefault } from '../../kernel/validate.ts'
import { listDestinations } from '../../services/hooks/send/destinations/destinations.ts'
import { findEventStart } from '../../services/hooks/log/events/detail.ts'
import { readProviders } from '../../services/hooks/receive/providers/providers.ts'
import { PRESETS } from '../../services/hooks/receive/schemes/presets/presets.ts'
import { listSearches } from '../../services/hooks/log/searches.ts'
import { page, type HooksRoutes } from './kit.ts'

const PATH = '/palette'

/**
 * What the palette finds: pages and actions, an event by its id, saved searches, providers,
 * destinations.
 */
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
  const [event, searches, providers, destinations] = await Promise.all([
    id === undefined ? undefined : findEventStart(db, id, 0),
    listSearches(db),
    readProviders(db, now),
    listDestinations(db, null, 0),
  ])
  return [
    { title: 'Events', places: event === undefined ? [] : [eventPlace(event)] },
    {
      title: 'Saved searches',
      places: withName(searches, text).map(({ name, query }) => {
        return { href: `/log?${query}`, label: name, detail: filtersText(query) }
      }),
    },
    { title: 'Providers', places: named(providers, text, '/providers?open=') },
    { title: 'Add a provider', places: senderPlaces(text) },
    { title: 'Destinations', places: named(destinations, text, '/destinations/') },
  ]
}

/** Each leads to the form of a provider that checks the signatures of this sender. */
function senderPlaces(text: string) {
  const found = PRESETS.filter(({ title }) => hasWords(`Add ${title}`, text))
  return found.slice(0, MAX_PLACES).map(({ name, title }) => {
    return { href: `/providers/new?scheme=${name}`, label: `Add ${title}` }
  })
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
  return withName(rows, text).map(({ name }) => {
    return { href: path + encodeURIComponent(name), label: name }
  })
}

function withName<T extends { name: string }>(rows: readonly T[], text: string): readonly T[] {
  return rows.filter(({ name }) => hasWords(name, text)).slice(0, MAX_PLACES)
}
