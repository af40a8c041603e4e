import type { Notice } from '../../db/notices.ts'
import { escapeDiscord, escapeSlack, shorten } from '../../kernel/markup.ts'
import { cutBytes, percentDecoded } from '../../kernel/text.ts'
import { PAGERDUTY_NAMES, TELEGRAM_NAMES, type Address, type Kind } from './address.ts'

// The forms are those of the services' documents of 2026:
// https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
// https://docs.discord.com/developers/resources/webhook#execute-webhook
// https://core.telegram.org/bots/api#sendmessage
// https://docs.ntfy.sh/publish/
// https://developer.pagerduty.com/docs/send-alert-event
// https://github.com/caronc/apprise-api

/** One of several notices that are sent as one, with the page that it is about. */
export type ListedSend = Pick<Notice, 'id' | 'begin_id' | 'level' | 'service' | 'message'> & {
  readonly url: string
}

/** A notice with what all forms say of it. */
export interface Message {
  notice: Notice
  /** The notices for which `notice` stands; none when it is alone. */
  all: readonly ListedSend[]
  /** 0 for the notice, above it the number of a reminder, -1: somebody has acknowledged it. */
  number: number
  /** The notice whose key PagerDuty knows it by. */
  incident: number
  /** Leads to what it is about. */
  link: string
  /** The page with the button that acknowledges it; null for what does not last. */
  acknowledge: string | null
  /** The address of this installation. */
  site: string
  /** The same at each try, and of no other notice. */
  key: string
}

/** A request over HTTP. */
export interface WebRequest {
  url: string
  headers: Readonly<Record<string, string>>
  body: string
  /** Whether an answer means that the notice is taken. */
  takes: (status: number) => boolean
}

type Form = (address: Address, message: Message) => WebRequest

/** What a target of mail gets. */
export interface Mail {
  /** The same at each try of a notice, and of no other mail. */
  id: string
  subject: string
  text: string
}

const NTFY_PRIORITY = { critical: 5, warning: 4, info: 3 } as const
const APPRISE_TYPE = { critical: 'failure', warning: 'warning', info: 'info' } as const

// Limits of the services in characters, those of ntfy in bytes. A longer text is refused, or kept
// as a file.
/** Of the text in a chat: with title and link it fits in 2,000. */
const MAX_CHAT = 1_500
const MAX_DISCORD = 2_000
const MAX_NTFY = 4_000
const MAX_SUMMARY = 1_024
const MAX_DETAILS = 20_000
const MAX_SUBJECT = 150
/** Apprise refuses a longer title, and a body of more than 32,768. */
const MAX_APPRISE_TITLE = 250
const MAX_APPRISE_BODY = 30_000

const FORMS: Readonly<Record<Exclude<Kind, 'mail'>, Form>> = {
  json: (address, { notice, all, number: reminder, link, acknowledge }) => {
    const { site: _site, path: _path, ...told } = notice
    const body = { ...told, reminder, url: link, acknowledge_url: acknowledge }
    const storm = { ...body, kind: 'storm', notices: all }
    return jsonTo(address, all.length === 0 ? body : storm, bearer(address))
  },
  slack: (address, message) => jsonTo(address, { text: escapeSlack(plainText(message)) }),
  discord: (address, message) => {
    // What a checked service says must not call everybody of the channel.
    const mentions = { allowed_mentions: { parse: [] } }
    const content = shorten(escapeDiscord(plainText(message)), MAX_DISCORD)
    return jsonTo(address, { content, ...mentions })
  },
  telegram: ({ url, token }, message) => {
    const target = new URL(url)
    const chat_id = target.searchParams.get('chat_id')
    // The form of an address lets only numbers and switches through.
    const given = givenIn(target, TELEGRAM_NAMES, (text) => JSON.parse(text) as unknown)
    if (token !== undefined) target.pathname = `/bot${token}/sendMessage`
    target.search = ''
    // Without `parse_mode` a text has no markup.
    const preview = { link_preview_options: { is_disabled: true } }
    const text = plainText(message)
    return jsonTo({ url: target.href }, { chat_id, text, ...preview, ...given })
  },
  ntfy: (address, message) => {
    const { notice, link, acknowledge } = message
    const target = new URL(address.url)
    const topic = percentDecoded(target.pathname.slice(1)) ?? ''
    // As JSON, because headers take printable ASCII only. ntfy reads it at its root alone.
    target.pathname = '/'
    const body = {
      topic,
      title: titleOf(message),
      message: cutBytes(notice.message, MAX_NTFY),
      priority: NTFY_PRIORITY[notice.level],
      tags: [notice.begin_id === null ? notice.level : 'white_check_mark'],
      click: link,
      actions:
        acknowledge === null ? [] : [{ action: 'view', label: 'Acknowledge', url: acknowledge }],
    }
    return jsonTo({ url: target.href }, body, bearer(address))
  },
  pagerduty: ({ url, token }, { notice, number, incident, link, site }) => {
    const target = new URL(url)
    const routing_key = token ?? target.searchParams.get('routing_key')
    const given = givenIn(target, PAGERDUTY_NAMES, (text) => text)
    target.search = ''
    const { begin_id, service, level, message: text } = notice
    const dedup_key = `${site} notice ${incident}`.slice(-255)
    if (begin_id !== null || number < 0) {
      const event_action = begin_id === null ? 'acknowledge' : 'resolve'
      return jsonTo({ url: target.href }, { routing_key, event_action, dedup_key })
    }
    const summary = shorten(text, MAX_SUMMARY)
    const custom_details = { message: shorten(text, MAX_DETAILS) }
    return jsonTo(
      { url: target.href },
      {
        routing_key,
        event_action: 'trigger',
        dedup_key,
        client: 'Gatehouse',
        links: [{ href: link, text: 'Gatehouse' }],
        payload: {
          ...given,
          summary,
          source: service,
          severity: level,
          custom_details,
        },
      },
    )
  },
  apprise: (address, message) => {
    const target = new URL(address.url)
    const { searchParams } = target
    const urls = searchParams.get('urls')
    // Without a tag Apprise leaves out all that have one.
    const to = urls === null ? { tag: searchParams.get('tag') ?? 'all' } : { urls }
    target.search = ''
    const { level, begin_id } = message.notice
    const type = begin_id === null ? APPRISE_TYPE[level] : 'success'
    const body = `${shorten(message.notice.message, MAX_APPRISE_BODY)}\n${linksOf(message)}`
    const title = shorten(titleOf(message), MAX_APPRISE_TITLE)
    const text = { title, body, type, format: 'text' }
    // It answers 204 where the key has no configuration.
    return {
      ...jsonTo({ url: target.href }, { ...text, ...to }, bearer(address)),
      takes: (status) => status === 200,
    }
  },
}

/** The request by which an address gets a message. */
export function requestOf(address: Address & { kind: keyof typeof FORMS }, message: Message) {
  return FORMS[address.kind](address, message)
}

/** The mail of a message. */
export function mailOf(message: Message): Mail {
  const { notice } = message
  const [first = ''] = notice.message.split('\n')
  const subject = shorten(`${titleOf(message)} ${first}`, MAX_SUBJECT)
  return {
    // Mail servers drop a mail whose id they have seen. The notices of each installation are numbered
    // from 1, so the time tells them apart.
    id: `${message.key}.${notice.created_at.getTime()}`,
    subject,
    text: `${notice.message}\n\n${notice.created_at.toISOString()}\n${linksOf(message)}\n`,
  }
}

function titleOf({ notice: { service, level, begin_id }, number }: Message): string {
  const state = begin_id === null ? level : 'over'
  return `Gatehouse: ${service} (${state}${number === 0 ? '' : `, reminder ${number}`})`
}

/** Title, text and link; the link always fits. */
function plainText(message: Message): string {
  const text = shorten(message.notice.message, MAX_CHAT)
  return `${titleOf(message)}\n${text}\n${linksOf(message)}`
}

function linksOf({ link, acknowledge }: Message): string {
  return acknowledge === null ? link : `${link}\nAcknowledge: ${acknowledge}`
}

function jsonTo(
  { url }: Pick<Address, 'url'>,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): WebRequest {
  return {
    url,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    takes: isSuccess,
  }
}

/** The parameters of an address with these names, as members of a body. */
function givenIn(
  { searchParams }: URL,
  names: readonly string[],
  read: (text: string) => unknown,
): Readonly<Record<string, unknown>> {
  const given = names.filter((name) => (searchParams.get(name) ?? '') !== '')
  return Object.fromEntries(given.map((name) => [name, read(searchParams.get(name) ?? '')]))
}

function bearer({ token }: Address): Readonly<Record<string, string>> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` }
}

function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299
}
