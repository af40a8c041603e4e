/** A kind of client, and whether it is a program rather than a person's browser. */
export interface Client {
  name: string
  isProgram: boolean
}

/** Programs by what their user agents say, the more precise ones first. */
const PROGRAMS = [
  ['Slack', /slack/i],
  ['Teams or Skype', /skypeuripreview|microsoftpreview|teams/i],
  ['WhatsApp', /whatsapp/i],
  ['Facebook', /facebookexternalhit|facebot/i],
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

/** User agents of all programs, also of those that fetch a link to show a preview. */
const BOTS = [
  /(?<!cu)bot\b|crawl|spider|slurp|preview|externalhit|linkexpanding|embed|fetch|curl|wget/i,
  /python|ruby|php|^node|undici|go-http|httpclient|java\/|okhttp|axios|whatsapp/i,
  /headless|monitor|uptime|scan/i,
]

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
  if (userAgent === '') return { name: 'unnamed', isProgram: true }
  const isProgram = BOTS.some((bot) => bot.test(userAgent))
  const known = isProgram ? PROGRAMS : BROWSERS
  const [name] = known.find(([, pattern]) => pattern.test(userAgent)) ?? []
  return { name: name ?? (isProgram ? 'other program' : 'other'), isProgram }
}
