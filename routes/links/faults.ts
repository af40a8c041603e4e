import type { ServiceLink } from '../../html/layout.ts'
import { linksFrame, type Viewer } from '../../html/links/layout.ts'
import { linksErrorPage } from '../../html/links/visits/visits/visits.ts'
import { Fault, notFound } from '../../kernel/fault.ts'
import type { Context } from '../../kernel/http/context.ts'
import { htmlReply, jsonReply, type Reply } from '../../kernel/http/reply.ts'
import { audienceOf } from '../../kernel/http/view.ts'
import { extensionHeaders } from './extensions.ts'

/** The services that run, for the header of a page. */
interface Services {
  services: () => readonly ServiceLink[]
}

/**
 * Errors of the links service: `{error, code}`, and a page to a browser. The viewer is undefined
 * for visitors who are not signed in, and null if the request failed before that was known.
 */
export function faultReply(
  app: Services,
  fault: Fault,
  request: Pick<Context, 'path' | 'headers'>,
  viewer: Viewer,
): Reply {
  const isApi = request.path.startsWith('/api/')
  if (!isApi && audienceOf(request) === 'browser') return faultPage(app, fault, viewer)
  const headers = { ...fault.headers, ...(isApi && extensionHeaders(request.headers)) }
  return jsonReply({ error: fault.message, code: fault.code }, fault.status, headers)
}

/** The page of a fault. */
export function faultPage({ services }: Services, fault: Fault, viewer: Viewer): Reply {
  const page = linksFrame(linksErrorPage(viewer, fault), viewer, services())
  return htmlReply(page, fault.status, fault.headers)
}

/** A `Location` that proxies and browsers may not take (services/links/names/links/target.ts). */
export const LOCATION_TOO_LONG = new Fault(
  414,
  'URI_TOO_LONG',
  'with what the visit adds, the address that the link leads to is too long',
)

export const NOT_FOUND = notFound('nothing is served under this path')
