import { html, type Html } from '../../kernel/html.ts'
import { copyBox } from '../parts.ts'
import type { ProvidersView } from './views.ts'

type Made = NonNullable<ProvidersView['made']>

/** Shown this one time: the focus goes to it, so that neither eye nor screen reader misses it. */
export function madeBox(made: Made): Html {
  const { name, token, rotated } = made
  const done = rotated ? html`${name} has its new secret` : html`${name} was created`
  return html`<section
    id="made"
    class="panel made"
    tabindex="-1"
    autofocus
    aria-labelledby="made-title"
  >
    <h2 id="made-title">${token === null ? done : html`Secret of ${name}`}</h2>
    ${
      token !== null &&
      html`<p>
          <strong>Copy it now: it is shown only this once.</strong>
        </p>
        ${copyBox('made-token', made.trust_mode === 'signed' ? 'secret' : 'token', token)}`
    }
    <p>Send to this URL.${!rotated && ' The provider is disabled until you switch it on below.'}</p>
    ${copyBox('made-curl', 'curl command', made.trust_mode === 'signed' ? signedCurl(made) : curl(made))}
  </section>`
}

function curl({ url, token }: Made): string {
  const authorization = token === null ? '' : `  -H 'Authorization: Bearer ${token}' \\\n`
  return (
    `curl -X POST '${url}' \\\n${authorization}` +
    `  -H 'Content-Type: application/json' \\\n  -d '{"hello": "world"}'`
  )
}

/** What a sender's library does, in a shell. */
function signedCurl({ url, token }: Made): string {
  return `SECRET='${token ?? 'whsec_…'}'
BODY='{"hello": "world"}'; ID=msg_$(openssl rand -hex 12); TIME=$(date +%s)
KEY=$(printf %s "\${SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \\n')
SIGNATURE=$(printf %s "$ID.$TIME.$BODY" | openssl dgst -sha256 -mac HMAC -macopt hexkey:$KEY -binary | openssl base64 -A)
curl -X POST '${url}' \\
  -H "webhook-id: $ID" -H "webhook-timestamp: $TIME" -H "webhook-signature: v1,$SIGNATURE" \\
  -H 'Content-Type: application/json' --data-raw "$BODY"`
}
