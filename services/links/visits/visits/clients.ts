import type { ClickKind } from '../../../../db/links/visits/visits.ts'

/** A kind of client, and what a visit by it counts as. */
export interface Client {
  name: string
  kind: ClickKind
}

/** Programs that show a preview of an address in a chat or a feed: nobody has followed it yet. */
const PREVIEWS = [
  ['Slack', /slackbot|slack-imgproxy/i],
  ['Teams or Skype', /skypeuripreview|microsoftpreview/i],
  ['Discord', /discordbot\//i],
  ['Telegram', /telegrambot/i],
  ['WhatsApp', /whatsapp/i],
  ['Facebook', /facebookexternalhit|facebot/i],
  ['X', /twitterbot/i],
  ['LinkedIn', /linkedinbot/i],
  ['Mattermost', /mattermost-bot/i],
  ['Bluesky', /bluesky cardyb/i],
  ['Reddit', /redditbot/i],
  ['other preview', /vkshare|embedly|iframely|snap url preview|bitrix link preview/i],
] as const

/** Programs by what their user agents say, the more precise ones first. */
const PROGRAMS = [
  ['search engine', /googlebot|bingbot|duckduckbot|yandexbot|baiduspider|applebot|slurp/i],
  ['curl', /curl/i],
  ['wget', /wget/i],
  ['Python', /python/i],
  ['Go', /go-http/i],
  ['Java', /java\/|okhttp|httpclient/i],
  ['JavaScript', /^node|undici|axios|fetch/i],
  ['Ruby', /ruby/i],
  ['PHP', /php/i],
  ['monitoring', /monitor|uptime/i],
] as const

/** User agents of other programs; `Cubot` is a telephone. */
const OTHER_PROGRAM =
  /(?<!cu)bot\b|crawl|spider|preview|externalhit|linkexpanding|embed|headless|scan/i

/** Browsers: most say that they are another one, too, so the order counts. */
const BROWSERS = [
  ['Edge', /\bedg(e|a|ios)?\//i],
  ['Opera', /\bopr\/|\bopera\b/i],
  ['Samsung Internet', /\bsamsungbrowser\//i],
  ['Firefox', /\b(firefox|fxios)\//i],
  ['Chrome', /\b(chrome|crios|chromium)\//i],
  ['Safari', /\bsafari\//i],
] as const

/** The kind of client that names itself so. A name without a kind is never kept. */
export function clientOf(userAgent: string): Client {
  if (userAgent === '') return { name: 'unnamed', kind: 'bot' }
  const preview = nameIn(PREVIEWS, userAgent)
  if (preview !== undefined) return { name: preview, kind: 'preview' }
  const program = nameIn(PROGRAMS, userAgent)
  if (program !== undefined) return { name: program, kind: 'bot' }
  if (OTHER_PROGRAM.test(userAgent)) return { name: 'other program', kind: 'bot' }
  return { name: nameIn(BROWSERS, userAgent) ?? 'other', kind: 'human' }
}

function nameIn(known: readonly (readonly [string, RegExp])[], userAgent: string) {
  return known.find(([, pattern]) => pattern.test(userAgent))?.[0]
}
