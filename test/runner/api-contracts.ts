import { request } from '../helpers/http.ts'
import type { Owner } from '../helpers/owner.ts'
import { type Service, startServer } from '../helpers/server.ts'
import { contractFaults } from './contract.ts'
import { compare } from './documented.ts'
import { exchangesOf } from './exchanges.ts'

const SERVICES: readonly Service[] = ['hooks', 'links', 'ops']

/** How the check of one service went. */
type ContractReport = {
  service: Service
  /** Calls that the run made. */
  calls: number
  faults: readonly string[]
}

/** What a run was: a long one asks prism as well, a whole one has called every operation. */
type Run = { isLong: boolean; isWhole: boolean }

/** Checks all calls that a run made of the APIs against the documents that the services serve. */
export async function checkContracts(folder: string, { isLong, isWhole }: Run) {
  const reports: ContractReport[] = []
  const all = exchangesOf(folder)
  for (const service of SERVICES) {
    const exchanges = all[service] ?? []
    if (exchanges.length === 0) continue
    const faults = await withOwner(async (owner) => {
      const server = await startServer(owner, { services: [service] })
      const { text } = await request(`${server[service]}/api/openapi.yaml`)
      const { faults, unreached } = compare(text, exchanges)
      return [
        ...faults,
        ...(isWhole ? unreached.map((operation) => `${operation} never succeeded`) : []),
        ...(isLong ? await contractFaults(owner, text, exchanges) : []),
      ]
    })
    reports.push({ service, calls: exchanges.length, faults })
  }
  return reports
}

/** Ends what was started, last first, as a test does. */
async function withOwner<T>(body: (owner: Owner) => Promise<T>) {
  const ends: (() => unknown)[] = []
  try {
    return await body({ teardown: (end) => ends.push(end) })
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}
