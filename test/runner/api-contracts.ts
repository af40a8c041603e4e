import { request } from '../helpers/http.ts'
import type { Owner } from '../helpers/owner.ts'
import type { Service } from '../helpers/server.ts'
import { startServer } from '../helpers/server.ts'
import { contractFaults } from './contract.ts'
import { exchangesOf } from './exchanges.ts'

/** The services whose document says all of their API. */
const DOCUMENTED: readonly Service[] = ['hooks', 'links', 'ops']

/** How the check of one service went. */
export type ContractReport = {
  readonly service: Service
  /** Calls that the run made. */
  readonly calls: number
  readonly faults: readonly string[]
}

/** Checks all calls that a run made of the APIs against the documents that the services serve. */
export async function checkContracts(folder: string): Promise<readonly ContractReport[]> {
  const reports: ContractReport[] = []
  for (const service of DOCUMENTED) {
    const exchanges = exchangesOf(folder, service)
    if (exchanges.length === 0) continue
    const faults = await withOwner(async (owner) => {
      const server = await startServer(owner, { services: [service] })
      const document = await request(`${server[service]}/api/openapi.yaml`)
      return contractFaults(owner, document.text, exchanges)
    })
    reports.push({ service, calls: exchanges.length, faults })
  }
  return reports
}

/** Ends what was started, last first, as a test does. */
async function withOwner<T>(body: (owner: Owner) => Promise<T>): Promise<T> {
  const ends: (() => unknown)[] = []
  try {
    return await body({ teardown: (end) => ends.push(end) })
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}
