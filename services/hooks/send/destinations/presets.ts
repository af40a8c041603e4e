// Templates that make a message of an event, in the form that a chat service takes. The forms are
// those of the services' documentation of 2026:
// https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
// https://docs.discord.com/developers/resources/webhook#execute-webhook
// https://docs.ntfy.sh/publish/#publish-as-json
// https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
// https://learn.microsoft.com/adaptive-cards/create/textfeatures

import { escapeDiscord, escapeSlack } from '../../../../kernel/markup.ts'

/** A template with a name. */
export interface Preset {
  template: string
  /** Makes a value plain text where the service would read it as markup. */
  escape?: (text: string) => string
  /** The topic in the URL of a service that takes it in the body; undefined without one. */
  topicOf?: (url: URL) => string | undefined
}

const PRESET_NAMES = ['slack', 'discord', 'ntfy', 'teams'] as const
type PresetName = (typeof PRESET_NAMES)[number]

/** The preset of a name; undefined for the text of a template. */
export function presetOf(name: string): Preset | undefined {
  return Object.hasOwn(PRESETS, name) ? PRESETS[name as PresetName] : undefined
}

const PRESETS: Readonly<Record<PresetName, Preset>> = {
  slack: {
    template: JSON.stringify({ text: '{{title}}: {{summary}}' }),
    escape: escapeSlack,
  },
  discord: {
    // A sender must not be able to notify everybody of the channel.
    template: JSON.stringify({
      content: '{{title}}: {{summary}}',
      allowed_mentions: { parse: [] },
    }),
    escape: escapeDiscord,
  },
  ntfy: {
    template: JSON.stringify({ topic: '{{topic}}', title: '{{title}}', message: '{{summary}}' }),
    topicOf: ({ pathname }) => /^\/([\w-]{1,64})$/.exec(pathname)?.[1],
  },
  teams: {
    template: JSON.stringify({
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          contentUrl: null,
          content: {
            $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
            type: 'AdaptiveCard',
            version: '1.2',
            // Of all texts of a card only that of a TextRun is not read as Markdown.
            body: [
              {
                type: 'RichTextBlock',
                inlines: [{ type: 'TextRun', text: '{{title}}', weight: 'Bolder' }],
              },
              { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: '{{summary}}' }] },
            ],
          },
        },
      ],
    }),
  },
}
