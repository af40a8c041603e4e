import { hooksErrorPage } from '../../html/hooks/layout.ts'
import { problem, htmlReply, type FaultReply, type Reply } from '../../kernel/http/reply.ts'
import { audienceOf } from '../../kernel/http/view.ts'

/**
 * Errors of the hooks service: problem+json everywhere (hooks.md section 7), and a page for a
 * person who navigates with a browser. `instance` is the route's path without anything that may be
 * a token.
 */
export const hooksFault: FaultReply = (fault, request): Reply => {
  const isForPrograms = /^\/(webhooks|api)\//.test(request.path)
  if (!isForPrograms && audienceOf(request) === 'browser') {
    return htmlReply(hooksErrorPage(fault), fault.status, fault.headers)
  }
  return problem(fault, instanceOf(request.path))
}

/** The path as a URI reference; the token of `/webhooks/generic/{name}/{token}` is left out. */
function instanceOf(path: string): string {
  return path.startsWith('/api/') ? path : path.split('/').slice(0, 4).join('/')
}
