import * as Type from '../../kernel/schema.ts'
import type { AssistantCaller } from '../../db/ops/assistants/assistants.ts'
import type { ServiceLink } from '../../html/layout.ts'
import { opsFrame } from '../../html/ops/layout.ts'
import { pauseBanner } from '../../html/ops/agent/pause.ts'
import { badRequest } from '../../kernel/fault.ts'
import { anyone, endpointsOf, visitor } from '../../kernel/http/endpoint.ts'
import { parsed } from '../../kernel/validate.ts'
import type { Assistants } from '../../services/ops/assistants/assistants/tools.ts'
import type { Ops } from '../../services/ops/open.ts'
import type { Offer, Offers } from '../../services/ops/agent/tools/offers.ts'
import { opsFault } from './faults.ts'

/** What the endpoints of the ops listener work with. */
export interface OpsApp {
  ops: Ops
  version: string
  /** The services that run, for the header of the pages. */
  services: () => readonly ServiceLink[]
  /** Public address of the service, without a slash at its end. */
  baseUrl: () => string
  /** The key of the alert webhook and the chat API, as configured now. */
  chatKey: () => string | undefined
  /** The tools of the sessions that agents run in this process. */
  offers: Offers
  /** Who calls `/mcp/ops`, and what is offered there. */
  assistants: Assistants
}

const MIB = 1024 * 1024

/** Who calls: the agent of a session, an assistant, or somebody of whom nothing is known. */
export type Caller = Offer | AssistantCaller | undefined

/** Ops has no sign-in: pages and API are for `anyone` (ops.md section 5). */
export const { api, page, form, raw, action } = endpointsOf<OpsApp, Caller>({
  access: anyone,
  pageAccess: visitor,
  bodyLimit: MIB,
  alwaysRefuses: [500, 503],
  faultReply: opsFault,
  frame: ({ ops, services }, page) => opsFrame(page, services(), pauseBanner(ops.pause.current)),
})

/** For forms with a long text: 100,000 characters take up to 900,000 bytes in a form. */
export const LONG_FORM_LIMIT = MIB

/** The id of a row, in the path. */
export function idOf(noun: string) {
  return parsed(Type.Integer({ description: 'Id' }), '', (given) => {
    if (typeof given === 'number') return given
    throw badRequest(`the ${noun} id must be an integer`, 'id')
  })
}
