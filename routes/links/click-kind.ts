import type { IncomingHttpHeaders } from 'node:http'

/** Programs that say so, those that fetch a link to show what is behind it among them. */
const BOT =
  /(?<!cu)bot\b|crawl|spider|slurp|preview|externalhit|linkexpanding|embed|fetch|curl|wget|python|ruby|php|^node|undici|go-http|httpclient|java\/|okhttp|axios|whatsapp|headless|monitor|uptime|scan/i

/** Whether a person follows a link, or a program; a browser that loads ahead counts as a program. */
export function clickKind(headers: IncomingHttpHeaders): 'human' | 'bot' {
  const agent = headers['user-agent']
  if (agent === undefined || agent === '' || BOT.test(agent)) return 'bot'
  const purpose = headers['sec-purpose'] ?? headers['purpose']
  return purpose === undefined ? 'human' : 'bot'
}
