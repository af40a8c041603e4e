import type { Preset } from '../scheme.ts'
import {
  BASE64,
  DISCORD,
  EVENT,
  HEX,
  NOWHERE,
  SHA256_HEX,
  STANDARD_WEBHOOKS,
  TYPE,
} from './shared.ts'

// Chat, calls, mail and social networks.

export const CHAT: readonly Preset[] = [
  {
    name: 'slack',
    title: 'Slack',
    docs: 'https://docs.slack.dev/authentication/verifying-requests-from-slack/',
    setup:
      'In the settings of your app, under Event Subscriptions, set this URL as Request URL. Copy ' +
      'the Signing Secret from Basic Information.',
    tested: 'vector',
    scheme: {
      ...HEX,
      signature: ['x-chat-signature', 'x-slack-signature'],
      prefix: 'v0=',
      signed: 'v0:{timestamp}:{body}',
      timestamp: ['x-chat-request-timestamp', 'x-slack-request-timestamp'],
      timeMissing: 400,
      type: { headers: [], json: ['event.type', 'type', 'command'] },
      id: { headers: [], json: ['event_id', 'trigger_id'] },
      isGiven: true,
      handshake: 'slack',
    },
  },
  {
    name: 'discord',
    title: 'Discord (Ed25519)',
    docs: 'https://docs.discord.com/developers/events/webhook-events',
    setup:
      'In the settings of your app, under Webhooks, set this URL as Endpoint. Copy the Public ' +
      'Key from General Information.',
    tested: 'library',
    scheme: DISCORD,
  },
  {
    name: 'telegram',
    title: 'Telegram (secret token)',
    docs: 'https://core.telegram.org/bots/api#setwebhook',
    setup: 'Call setWebhook with this URL. Give it the token that is made here as secret_token.',
    tested: 'document',
    scheme: {
      token: ['x-telegram-bot-api-secret-token'],
      type: NOWHERE,
      id: NOWHERE,
    },
  },
  {
    name: 'twilio',
    title: 'Twilio (SHA-1, forms)',
    docs: 'https://www.twilio.com/docs/usage/security#validating-requests',
    setup:
      'Set this URL, to the letter, as the webhook or status callback. Copy the Auth Token of ' +
      'the account.',
    tested: 'vector',
    scheme: {
      ...BASE64,
      algorithm: 'sha1',
      signature: ['x-twilio-signature'],
      signed: '{url}{form}',
      type: { headers: [], json: ['MessageStatus', 'CallStatus', 'SmsStatus'] },
      id: NOWHERE,
      isGiven: true,
    },
  },
  {
    name: 'meta',
    title: 'Meta (Facebook, Instagram)',
    docs: 'https://developers.facebook.com/docs/graph-api/webhooks/getting-started',
    setup:
      'In the dashboard of your app, under Webhooks, set this URL with any verify token. Copy the ' +
      'App Secret from the basic settings.',
    tested: 'document',
    scheme: {
      ...SHA256_HEX,
      signature: ['x-hub-signature-256'],
      type: { headers: [], json: ['object'] },
      id: NOWHERE,
      isGiven: true,
      answer: 200,
      handshake: 'meta',
    },
  },
  {
    name: 'whatsapp',
    title: 'WhatsApp',
    docs: 'https://developers.facebook.com/docs/whatsapp/cloud-api/guides/set-up-webhooks',
    setup:
      'In the dashboard of your app, under WhatsApp, Configuration, set this URL with any verify ' +
      'token. Copy the App Secret from the basic settings.',
    tested: 'document',
    scheme: {
      ...SHA256_HEX,
      signature: ['x-hub-signature-256'],
      type: { headers: [], json: ['object'] },
      id: NOWHERE,
      isGiven: true,
      answer: 200,
      handshake: 'meta',
    },
  },
  {
    name: 'zoom',
    title: 'Zoom',
    docs: 'https://developers.zoom.us/docs/api/webhooks/#verify-webhook-events',
    setup:
      'In the Marketplace, under Access of your app, add an event subscription with this URL. ' +
      'Copy the Secret Token, and validate the URL.',
    tested: 'library',
    scheme: {
      ...HEX,
      signature: ['x-zm-signature'],
      prefix: 'v0=',
      signed: 'v0:{timestamp}:{body}',
      timestamp: ['x-zm-request-timestamp'],
      type: EVENT,
      id: NOWHERE,
      isGiven: true,
      answer: 200,
      handshake: 'zoom',
    },
  },
  {
    name: 'twitch',
    title: 'Twitch EventSub',
    docs: 'https://dev.twitch.tv/docs/eventsub/handling-webhook-events/',
    setup:
      'Create an EventSub subscription whose transport has this URL as callback. Give it the ' +
      'secret that is made here.',
    tested: 'document',
    scheme: {
      ...SHA256_HEX,
      signature: ['twitch-eventsub-message-signature'],
      signed: '{id}{timestamp}{body}',
      timestamp: ['twitch-eventsub-message-timestamp'],
      clock: 'RFC 3339',
      type: { headers: ['twitch-eventsub-subscription-type'], json: [] },
      id: { headers: ['twitch-eventsub-message-id'], json: [] },
      handshake: 'twitch',
    },
  },
  {
    name: 'sendgrid',
    title: 'SendGrid (ECDSA)',
    docs:
      'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/' +
      'getting-started-event-webhook-security-features',
    setup:
      'Under Settings, Mail Settings, Event Webhooks, add this URL and enable the signature. ' +
      'Copy the Verification Key.',
    tested: 'vector',
    scheme: {
      ...BASE64,
      algorithm: 'p256',
      signature: ['x-twilio-email-event-webhook-signature'],
      signed: '{timestamp}{body}',
      timestamp: ['x-twilio-email-event-webhook-timestamp'],
      type: NOWHERE,
      id: NOWHERE,
      secret: 'public key',
      isGiven: true,
    },
  },
  {
    name: 'mailgun',
    title: 'Mailgun (signs no event)',
    docs: 'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks',
    setup:
      'Under Send, Webhooks, add this URL. Copy the HTTP webhook signing key from the API keys.',
    tested: 'document',
    scheme: {
      ...HEX,
      signature: ['json:signature.signature'],
      signed: '{timestamp}{json:signature.token}',
      timestamp: ['json:signature.timestamp'],
      type: { headers: [], json: ['event-data.event'] },
      id: { headers: [], json: ['event-data.id'] },
      isGiven: true,
      covers: 'caller',
      answer: 200,
    },
  },
  {
    name: 'postmark',
    title: 'Postmark (password)',
    docs: 'https://postmarkapp.com/developer/webhooks/webhooks-overview',
    setup:
      'In the settings of the message stream, under Webhooks, add this URL. Paste the token that ' +
      'is made here as the password of basic auth.',
    tested: 'document',
    scheme: {
      token: [],
      type: { headers: [], json: ['RecordType'] },
      id: NOWHERE,
      // Postmark tries again unless it gets 200, and gives a delivery up at 403.
      answer: 200,
      refusal: 401,
    },
  },
  {
    name: 'resend',
    title: 'Resend',
    docs: 'https://resend.com/docs/webhooks/verify-webhooks-requests',
    setup: 'Under Webhooks, add this URL. Copy its signing secret, which begins with whsec_.',
    tested: 'library',
    scheme: {
      ...STANDARD_WEBHOOKS,
      signature: ['svix-signature'],
      timestamp: ['svix-timestamp'],
      type: TYPE,
      id: { headers: ['svix-id'], json: [] },
      isGiven: true,
    },
  },
]
