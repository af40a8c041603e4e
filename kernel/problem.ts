import { STATUS_CODES } from 'node:http'
import type { Fault } from './fault.ts'
import { jsonReply, type Reply } from './reply.ts'

/** RFC 9457 body of a fault; members in the RFC's order, `type` always `about:blank`. */
export function problem(fault: Fault, instance: string): Reply {
  const body = {
    type: 'about:blank',
    title: STATUS_CODES[fault.status] ?? 'Error',
    status: fault.status,
    detail: fault.detail,
    instance,
  }
  return jsonReply(body, fault.status, fault.headers ?? {}, 'application/problem+json')
}
