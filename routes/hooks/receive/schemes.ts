import { sendersPage } from '../../../html/hooks/receive/schemes.ts'
import { listSenders } from '../../../services/hooks/receive/schemes/describe.ts'
import { page } from '../kit.ts'

/** `/providers/senders`: what is known of senders. */
export const schemeEndpoints = [
  page({
    path: '/providers/senders',
    async answer({ app }) {
      const show = () => sendersPage(listSenders(), app.baseUrl())
      return { page: show, fragment: () => show().body }
    },
  }),
]
