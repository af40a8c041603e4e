import type { Preset } from '../scheme.ts'
import {
  ADYEN_ITEM,
  ADYEN_MEMBERS,
  BASE64,
  EVENT,
  HEX,
  ID,
  NOWHERE,
  PAYPAL,
  PAYPAL_PATH,
  PLAID,
  SHA256_HEX,
  STAMPED,
  TYPE,
} from './shared.ts'

// Payments and shops.

export const SHOPS: readonly Preset[] = [
  {
    name: 'stripe',
    title: 'Stripe',
    docs: 'https://docs.stripe.com/webhooks#verify-manually',
    setup:
      'In the Workbench, under Webhooks, add a destination with this URL. Copy its signing ' +
      'secret, which begins with whsec_.',
    tested: 'library',
    scheme: {
      ...STAMPED,
      signature: ['payments-signature', 'stripe-signature'],
      type: TYPE,
      id: ID,
      isGiven: true,
    },
  },
  {
    name: 'paddle',
    title: 'Paddle',
    docs: 'https://developer.paddle.com/webhooks/signature-verification',
    setup:
      'Under Developer tools, Notifications, add a destination with this URL. Copy its secret ' +
      'key, which begins with pdl_ntfset_.',
    tested: 'vector',
    scheme: {
      ...HEX,
      signature: ['paddle-signature'],
      prefix: 'h1=',
      list: { separator: ';', time: 'ts=' },
      signed: '{timestamp}:{body}',
      type: { headers: [], json: ['event_type'] },
      id: { headers: [], json: ['notification_id', 'event_id'] },
      isGiven: true,
      answer: 200,
    },
  },
  {
    name: 'lemon-squeezy',
    title: 'Lemon Squeezy',
    docs: 'https://docs.lemonsqueezy.com/help/webhooks/signing-requests',
    setup:
      'In the settings of the store, under Webhooks, add this URL. Paste the secret that is made ' +
      'here as Signing secret.',
    tested: 'document',
    scheme: {
      ...HEX,
      signature: ['x-signature'],
      type: { headers: ['x-event-name'], json: ['meta.event_name'] },
      id: NOWHERE,
      answer: 200,
    },
  },
  {
    name: 'square',
    title: 'Square',
    docs: 'https://developer.squareup.com/docs/webhooks/step3validate',
    setup:
      'In the Developer Console, under Webhooks, add a subscription with this URL, to the ' +
      'letter. Copy its signature key.',
    tested: 'vector',
    scheme: {
      ...BASE64,
      signature: ['x-square-hmacsha256-signature'],
      signed: '{url}{body}',
      type: TYPE,
      id: { headers: [], json: ['event_id'] },
      isGiven: true,
    },
  },
  {
    name: 'adyen',
    title: 'Adyen (standard webhooks, signs some members)',
    docs:
      'https://docs.adyen.com/development-resources/webhooks/secure-webhooks/' +
      'verify-hmac-signatures',
    setup:
      'In the Customer Area, under Developers, Webhooks, add a standard webhook with this URL and ' +
      'the method JSON. Under Security, generate the HMAC key, and copy it.',
    tested: 'library',
    scheme: {
      ...BASE64,
      signature: [`json:${ADYEN_ITEM}.additionalData.hmacSignature`],
      signed: ADYEN_MEMBERS,
      single: 'notificationItems',
      type: { headers: [], json: [`${ADYEN_ITEM}.eventCode`] },
      // Several events of one payment have its reference.
      id: NOWHERE,
      secret: 'hex',
      isGiven: true,
      covers: 'members',
    },
  },
  {
    name: 'adyen-platform',
    title: 'Adyen (all other webhooks)',
    docs:
      'https://docs.adyen.com/development-resources/webhooks/secure-webhooks/' +
      'verify-hmac-signatures',
    setup:
      'In the Customer Area or the Balance Platform, under Developers, Webhooks, add a webhook ' +
      'with this URL. Generate its HMAC key, and copy it.',
    tested: 'library',
    scheme: {
      ...BASE64,
      signature: ['hmacsignature'],
      type: TYPE,
      id: NOWHERE,
      secret: 'hex',
      isGiven: true,
    },
  },
  {
    name: 'mollie',
    title: 'Mollie (next-gen webhooks)',
    docs: 'https://docs.mollie.com/reference/webhooks-best-practices',
    setup:
      'In the Dashboard, under Developers, Webhooks, add this URL. Copy the secret that is shown.',
    tested: 'document',
    scheme: {
      ...SHA256_HEX,
      signature: ['x-mollie-signature'],
      type: TYPE,
      id: ID,
      isGiven: true,
    },
  },
  {
    name: 'razorpay',
    title: 'Razorpay',
    docs: 'https://razorpay.com/docs/webhooks/validate-test/',
    setup:
      'In the Dashboard, under Account & Settings, Webhooks, add this URL. Paste the secret that ' +
      'is made here.',
    tested: 'vector',
    scheme: {
      ...HEX,
      signature: ['x-razorpay-signature'],
      type: EVENT,
      id: { headers: ['x-razorpay-event-id'], json: [] },
    },
  },
  {
    name: 'shopify',
    title: 'Shopify',
    docs: 'https://shopify.dev/docs/apps/build/webhooks/verify-deliveries',
    setup: 'Subscribe to the topics of your app with this URL. Copy the client secret of the app.',
    tested: 'library',
    scheme: {
      ...BASE64,
      signature: ['x-shopify-hmac-sha256', 'shopify-hmac-sha256'],
      type: { headers: ['x-shopify-topic', 'shopify-topic'], json: [] },
      // One change of a shop may be several deliveries with one event id.
      id: {
        headers: ['x-shopify-webhook-id', 'shopify-webhook-id', 'x-shopify-event-id'],
        json: [],
      },
      isGiven: true,
    },
  },
  {
    name: 'woocommerce',
    title: 'WooCommerce',
    docs: 'https://developer.woocommerce.com/docs/best-practices/urls-and-routing/webhooks/',
    setup:
      'Enable the provider, and add this URL under WooCommerce, Settings, Advanced, Webhooks. ' +
      'Paste the secret that is made here.',
    tested: 'document',
    scheme: {
      ...BASE64,
      signature: ['x-wc-webhook-signature'],
      type: { headers: ['x-wc-webhook-topic'], json: [] },
      id: { headers: ['x-wc-webhook-delivery-id'], json: [] },
      handshake: 'woocommerce',
    },
  },
  {
    name: 'paypal',
    title: 'PayPal',
    docs: 'https://developer.paypal.com/api/rest/webhooks/rest/',
    setup:
      'In the settings of your live app, add a webhook with this URL. Copy the ID of the webhook, ' +
      'and paste it as the secret: it is part of what PayPal signs.',
    tested: 'document',
    scheme: PAYPAL,
  },
  {
    name: 'paypal-sandbox',
    title: 'PayPal (sandbox)',
    docs: 'https://developer.paypal.com/api/rest/webhooks/rest/',
    setup:
      'In the settings of your sandbox app, add a webhook with this URL. Copy the ID of the ' +
      'webhook, and paste it as the secret: it is part of what PayPal signs.',
    tested: 'vector',
    scheme: {
      ...PAYPAL,
      fetched: {
        kind: 'certificate',
        at: 'paypal-cert-url',
        from: { host: /^api\.sandbox\.paypal\.com$/, path: PAYPAL_PATH },
      },
    },
  },
  {
    name: 'plaid',
    title: 'Plaid',
    docs: 'https://plaid.com/docs/api/webhooks/webhook-verification/',
    setup:
      'Give this URL as webhook when you create a Link token. As the secret, paste client_id and ' +
      'production secret of your team with a colon between: its keys are fetched with them.',
    tested: 'document',
    scheme: PLAID,
  },
  {
    name: 'plaid-sandbox',
    title: 'Plaid (sandbox)',
    docs: 'https://plaid.com/docs/api/webhooks/webhook-verification/',
    setup:
      'Give this URL as webhook when you create a Link token. As the secret, paste client_id and ' +
      'sandbox secret of your team with a colon between: its keys are fetched with them.',
    tested: 'document',
    scheme: {
      ...PLAID,
      fetched: {
        kind: 'plaid',
        address: 'https://sandbox.plaid.com/webhook_verification_key/get',
        bodyHash: 'request_body_sha256',
      },
    },
  },
]
