import type { Preset } from '../scheme.ts'
import { BASE64, EVENT, HEX, ID, NOWHERE, SHA256_HEX, STAMPED, TYPE } from './shared.ts'

// Work, customers, forms and contents.

export const PEOPLE: readonly Preset[] = [
  {
    name: 'asana',
    title: 'Asana',
    docs: 'https://developers.asana.com/docs/webhooks-guide',
    setup:
      'Enable the provider, and create a webhook by the API with this URL as target. Set the ' +
      'X-Hook-Secret of the answer as the secret here, by rotating without an overlap.',
    tested: 'document',
    scheme: {
      ...HEX,
      signature: ['x-hook-signature'],
      type: NOWHERE,
      id: NOWHERE,
      answer: 200,
      handshake: 'asana',
    },
  },
  {
    name: 'trello',
    title: 'Trello (SHA-1)',
    docs: 'https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/',
    setup:
      'Enable the provider, and create a webhook by the API with this URL, to the letter, as ' +
      'callbackURL. Copy the secret of your Power-Up.',
    tested: 'document',
    scheme: {
      ...BASE64,
      algorithm: 'sha1',
      signature: ['x-trello-webhook'],
      signed: '{body}{url}',
      type: { headers: [], json: ['action.type'] },
      id: { headers: [], json: ['action.id'] },
      isGiven: true,
      answer: 200,
      handshake: 'trello',
    },
  },
  {
    name: 'notion',
    title: 'Notion',
    docs: 'https://developers.notion.com/reference/webhooks',
    setup:
      'Verify the subscription with an open provider of this name: its event has the ' +
      'verification_token. Remove that provider, and add it again with the token as secret.',
    tested: 'library',
    scheme: {
      ...SHA256_HEX,
      signature: ['x-notion-signature'],
      type: TYPE,
      id: ID,
      isGiven: true,
    },
  },
  {
    name: 'clickup',
    title: 'ClickUp',
    docs: 'https://developer.clickup.com/docs/webhooksignature',
    setup: 'Create a webhook by the API with this URL. Copy the webhook.secret of its answer.',
    tested: 'document',
    scheme: { ...HEX, signature: ['x-signature'], type: EVENT, id: NOWHERE, isGiven: true },
  },
  {
    name: 'monday',
    title: 'monday.com (token in the URL)',
    docs: 'https://developer.monday.com/api-reference/reference/webhooks',
    setup:
      'Enable the provider, and add a webhook integration to the board, or create one by the API, ' +
      'with this URL. Put the token that is made here behind it, as ?token=TOKEN.',
    tested: 'document',
    scheme: {
      token: [],
      type: { headers: [], json: ['event.type'] },
      // The same for each try of one event.
      id: { headers: [], json: ['event.triggerUuid'] },
      handshake: 'monday',
    },
  },
  {
    name: 'hubspot',
    title: 'HubSpot (v3)',
    docs:
      'https://developers.hubspot.com/docs/apps/developer-platform/build-apps/authentication/' +
      'request-validation',
    setup:
      'Set this URL, to the letter, as the target of the webhooks of your app. Copy the client ' +
      'secret of the app.',
    tested: 'library',
    scheme: {
      ...BASE64,
      signature: ['x-hubspot-signature-v3'],
      signed: '{method}{url}{body}{timestamp}',
      timestamp: ['x-hubspot-request-timestamp'],
      clock: 'milliseconds',
      type: NOWHERE,
      id: NOWHERE,
      isGiven: true,
    },
  },
  {
    name: 'intercom',
    title: 'Intercom (SHA-1)',
    docs: 'https://developers.intercom.com/docs/webhooks/setting-up-webhooks',
    setup:
      'In the Developer Hub, under Webhooks of your app, set this URL. Copy the client secret ' +
      'from Basic Information.',
    tested: 'document',
    scheme: {
      ...HEX,
      algorithm: 'sha1',
      prefix: 'sha1=',
      signature: ['x-hub-signature'],
      type: { headers: [], json: ['topic'] },
      id: ID,
      isGiven: true,
      answer: 200,
    },
  },
  {
    name: 'zendesk',
    title: 'Zendesk',
    docs: 'https://developer.zendesk.com/documentation/webhooks/verifying/',
    setup:
      'In the Admin Center, under Apps and integrations, Webhooks, create a webhook with this ' +
      'URL. Copy its signing secret.',
    tested: 'document',
    scheme: {
      ...BASE64,
      signature: ['x-zendesk-webhook-signature'],
      signed: '{timestamp}{body}',
      timestamp: ['x-zendesk-webhook-signature-timestamp'],
      clock: 'RFC 3339',
      type: TYPE,
      id: ID,
      isGiven: true,
    },
  },
  {
    name: 'typeform',
    title: 'Typeform',
    docs: 'https://www.typeform.com/developers/webhooks/secure-your-webhooks/',
    setup:
      'In the form, under Connect, Webhooks, add this URL. Paste the secret that is made here, ' +
      'and switch the webhook on.',
    tested: 'document',
    scheme: {
      ...BASE64,
      prefix: 'sha256=',
      signature: ['typeform-signature'],
      type: { headers: [], json: ['event_type'] },
      id: { headers: [], json: ['event_id'] },
    },
  },
  {
    name: 'calendly',
    title: 'Calendly',
    docs: 'https://developer.calendly.com/api-docs/overview/webhooks/webhook-signatures',
    setup:
      'Create a webhook subscription by the API with this URL. Give it the secret that is made ' +
      'here as signing_key.',
    tested: 'document',
    scheme: { ...STAMPED, signature: ['calendly-webhook-signature'], type: EVENT, id: NOWHERE },
  },
  {
    name: 'cal-com',
    title: 'Cal.com',
    docs: 'https://cal.com/docs/developing/guides/automation/webhooks',
    setup:
      'In the settings, under Developer, Webhooks, add this URL. Paste the secret that is made ' +
      'here.',
    tested: 'document',
    scheme: {
      ...HEX,
      signature: ['x-cal-signature-256'],
      type: { headers: [], json: ['triggerEvent'] },
      id: NOWHERE,
    },
  },
  {
    name: 'contentful',
    title: 'Contentful',
    docs: 'https://www.contentful.com/developers/docs/extensibility/webhooks/request-verification/',
    setup:
      'In the settings of the space, under Webhooks, add this URL, without a query. In the ' +
      'settings of the webhooks, enable request verification, and copy the signing secret.',
    tested: 'library',
    scheme: {
      ...HEX,
      signature: ['x-contentful-signature'],
      signed: '{method}\n{path}\n{headers}\n{body}',
      signedHeaders: 'x-contentful-signed-headers',
      timestamp: ['x-contentful-timestamp'],
      clock: 'milliseconds',
      type: { headers: ['x-contentful-topic'], json: [] },
      id: { headers: ['x-contentful-idempotency-key'], json: [] },
      isGiven: true,
    },
  },
  {
    name: 'sanity',
    title: 'Sanity',
    docs: 'https://github.com/sanity-io/webhook-toolkit',
    setup:
      'In the management of the project, under API, Webhooks, create a webhook with this URL. ' +
      'Paste the secret that is made here.',
    tested: 'vector',
    scheme: {
      ...STAMPED,
      encoding: 'base64url',
      signature: ['sanity-webhook-signature'],
      clock: 'milliseconds',
      type: { headers: [], json: ['_type'] },
      id: NOWHERE,
    },
  },
  {
    name: 'ghost',
    title: 'Ghost',
    docs: 'https://docs.ghost.org/webhooks',
    setup:
      'In the settings, under Integrations, add a webhook with this URL to a custom integration. ' +
      'Paste the secret that is made here.',
    tested: 'document',
    scheme: {
      ...SHA256_HEX,
      signature: ['x-ghost-signature'],
      list: { separator: ',', time: 't=', isSpaced: true },
      signed: '{body}{timestamp}',
      clock: 'milliseconds',
      // The payload says what changed, and not which event it is.
      type: NOWHERE,
      id: NOWHERE,
    },
  },
  {
    name: 'docusign',
    title: 'DocuSign Connect',
    docs: 'https://developers.docusign.com/platform/webhooks/connect/validate/',
    setup:
      'In the settings, under Connect, add a configuration with this URL and include the HMAC ' +
      'signature. Copy the first key from Connect Keys.',
    tested: 'document',
    scheme: {
      ...BASE64,
      signature: ['x-docusign-signature-1'],
      type: EVENT,
      id: NOWHERE,
      isGiven: true,
      answer: 200,
    },
  },
  {
    name: 'dropbox',
    title: 'Dropbox',
    docs: 'https://www.dropbox.com/developers/reference/webhooks',
    setup:
      'Enable the provider, and add this URL in the App Console, under Webhooks. Copy the App ' +
      'secret.',
    tested: 'document',
    scheme: {
      ...HEX,
      signature: ['x-dropbox-signature'],
      type: NOWHERE,
      id: NOWHERE,
      isGiven: true,
      answer: 200,
      handshake: 'dropbox',
    },
  },
]
