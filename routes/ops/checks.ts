import Type from 'typebox'
import { checksView, type ChecksView } from '../../html/ops/checks.ts'
import { readHealth, type Health } from '../../services/ops/checks/health.ts'
import { page } from './kit.ts'
import { Filter, paging, readPage, type Paging } from './paging.ts'

const PATH = '/checks'
const MAX_SERVICES = 50

/** What is checked, and what came of it. */
export const checkEndpoints = [
  page({
    path: PATH,
    query: Type.Object({ ...paging(MAX_SERVICES), service: Filter }),
    async answer({ app: { ops }, query, now }) {
      return checksView(await pageOfChecks(await readHealth(ops, now), query))
    },
  }),
]

/** The beginning of the services, as the dashboard shows it. */
export function firstChecks(health: Health): Promise<ChecksView> {
  return pageOfChecks(health, { limit: MAX_SERVICES, offset: 0, service: null })
}

async function pageOfChecks(
  health: Health,
  query: Paging & { service: string | null },
): Promise<ChecksView> {
  const { service, offset, limit } = query
  if (service !== null) {
    const services = health.services.filter(({ name }) => name === service)
    const path = `${PATH}?service=${encodeURIComponent(service)}`
    return { health, services, path, older: undefined, isWhole: true }
  }
  const { rows: services, older } = await readPage(PATH, query, async (asked) =>
    health.services.slice(asked.offset, asked.offset + asked.limit),
  )
  const path = offset === 0 ? PATH : `${PATH}?limit=${limit}&offset=${offset}`
  return { health, services, path, older, isWhole: false }
}
