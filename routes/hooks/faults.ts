import { hooksErrorPage, hooksFrame } from '../../html/hooks/layout.ts'
import type { ServiceLink } from '../../html/layout.ts'
import type { Fault } from '../../kernel/fault.ts'
import type { Context } from '../../kernel/http/context.ts'
import { problem, htmlReply, type Reply } from '../../kernel/http/reply.ts'
import { audienceOf } from '../../kernel/http/view.ts'

/**
 * Errors of the hooks service: problem+json everywhere (hooks.md section 7), and a page for a
 * person who navigates with a browser. `instance` is the route's path without anything that may be
 * a token.
 */
export function hooksFault(
  { services }: { services: () => readonly ServiceLink[] },
  fault: Fault,
  request: Pick<Context, 'path' | 'headers'>,
): Reply {
  const isForPrograms = /^\/(webhooks|api)\//.test(request.path)
  if (!isForPrograms && audienceOf(request) === 'browser') {
    const page = hooksFrame(hooksErrorPage(fault), services())
    return htmlReply(page, fault.status, fault.headers)
  }
  return problem(fault, instanceOf(request.path))
}

/** The path as a URI reference; the token of `/webhooks/generic/{name}/{token}` is left out. */
function instanceOf(path: string): string {
  return path.startsWith('/api/') ? path : path.split('/').slice(0, 4).join('/')
}
