import * as Type from '../../kernel/schema.ts'
import { sessionQueries } from '../../db/ops/agent/sessions.ts'
import { opsPlaces, shortText, statusBadge } from '../../html/ops/layout.ts'
import { hasWords, idIn, MAX_PLACES, paletteView, type PlaceGroup } from '../../html/palette.ts'
import { timeTag } from '../../html/parts.ts'
import { html } from '../../kernel/html.ts'
import { withDefault } from '../../kernel/validate.ts'
import { listHealth } from '../../services/ops/watch/checks/health.ts'
import { page, type OpsApp } from './kit.ts'

const PATH = '/palette'
const SHOWN_LENGTH = 80

/** What the palette finds: pages and actions, a session by its id, checks. */
export const paletteEndpoints = [
  page({
    path: PATH,
    query: Type.Object({ q: withDefault(Type.String(), '') }),
    async answer({ app, query, now }) {
      const text = query.q.trim()
      const things = text === '' ? [] : await findThings(app, text, now)
      return paletteView(PATH, text, [...opsPlaces(app.services(), text), ...things])
    },
  }),
]

async function findThings(
  { ops: { db } }: OpsApp,
  text: string,
  now: Date,
): Promise<readonly PlaceGroup[]> {
  const id = idIn(text)
  const [session, checks] = await Promise.all([
    id === undefined ? undefined : sessionQueries.findSession(db, { id }),
    listHealth(db, now),
  ])
  const found = checks.filter(({ service, name }) => hasWords(`${service} ${name}`, text))
  return [
    { title: 'Sessions', places: session === undefined ? [] : [sessionPlace(session)] },
    {
      title: 'Checks',
      places: found.slice(0, MAX_PLACES).map(({ id, service, name, state }) => ({
        href: `/checks/${id}`,
        label: html`<bdi>${service}</bdi>: <bdi>${name}</bdi>`,
        detail: state,
      })),
    },
  ]
}

function sessionPlace(session: {
  id: number
  status: Parameters<typeof statusBadge>[0]
  started_at: Date
  prompt_text: string | null
}) {
  const { id, status, started_at, prompt_text } = session
  return {
    href: `/sessions/${id}`,
    label: html`Session ${id}`,
    detail: html`${statusBadge(status)} ${timeTag(started_at)}
    ${prompt_text !== null && shortText(prompt_text, SHOWN_LENGTH)}`,
  }
}
