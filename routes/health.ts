import { unavailable } from '../kernel/fault.ts'
import type { FaultReply } from '../kernel/http/listener.ts'
import { jsonReply } from '../kernel/http/reply.ts'
import type { Route } from '../kernel/http/router.ts'

/** `GET /healthz` of a listener whose contract has no health body of its own. */
export function plainHealthRoute(
  version: string,
  databaseAnswers: () => Promise<boolean>,
  faultReply: FaultReply,
): Route {
  return {
    method: 'GET',
    path: '/healthz',
    access: 'open',
    async handle(context) {
      if (await databaseAnswers()) return jsonReply({ status: 'ok', database: 'ok', version })
      return faultReply(unavailable('The database is out of reach.'), context)
    },
  }
}
