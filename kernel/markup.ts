// Texts of others in messages of chat services, as their documents of 2026 have it:
// https://docs.slack.dev/messaging/formatting-message-text
// https://docs.discord.com/developers/resources/message#allowed-mentions-object

/** Slack reads `<!channel>` as a call to everybody. */
export function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/**
 * A link of Markdown shows another address than it leads to. Nothing more is escaped: a long text
 * would become one that Discord refuses as too long. Its message must allow no mentions.
 */
export function escapeDiscord(text: string): string {
  return text.replaceAll('](', ']\\(')
}

/** The beginning of a text, with an ellipsis where it is cut. */
export function shorten(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text
  return `${text.slice(0, maxLength - 1).toWellFormed()}…`
}
