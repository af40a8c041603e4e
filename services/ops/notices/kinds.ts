import type { Notice } from '../../../db/ops/notices.ts'
import type { Address, Kind } from './address.ts'

/** What is sent for a notice. */
interface NoticeRequest {
  url: string
  headers: Readonly<Record<string, string>>
  body: string
}

/** How a notice becomes a request, for each form. `link` leads to what it is about. */
type Form = (address: Address, notice: Notice, link: string) => NoticeRequest

const PRIORITY = { critical: 'urgent', warning: 'high', info: 'default' } as const

const FORMS: Readonly<Record<Kind, Form>> = {
  json: ({ url }, notice, link) => ({
    url,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...notice, url: link }),
  }),
  ntfy: ({ url }, { level, service, message }, link) => ({
    url,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      // Headers take printable ASCII only.
      title: `Gatehouse: ${service}`.replaceAll(/[^ -~]/g, '?'),
      priority: PRIORITY[level],
      tags: level,
      click: link,
    },
    body: message,
  }),
}

/** The request by which an address gets a notice. */
export function requestOf(address: Address, notice: Notice, link: string): NoticeRequest {
  return FORMS[address.kind](address, notice, link)
}
