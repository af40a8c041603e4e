import { html, type Html } from '../../../../kernel/html.ts'
import {
  field,
  hiddenField,
  postForm,
  refusal,
  removalForm,
  select,
  submit,
  VERBATIM,
  type Form,
} from '../../../form.ts'
import { disclosed } from '../../../parts.ts'
import type { ProviderCard } from './shown.ts'

// What one stray click must not do: each is opened first, and its button then does it.

/** Sets or replaces a provider's secret; open right after it was refused. */
export function rotationOf(card: ProviderCard, key: string): Html | false {
  const { trust_mode, variable, isConfigured, isStored, canSign, rotation } = card
  if (trust_mode !== 'token' && trust_mode !== 'signed') return false
  if (card.secret_status === 'none-by-design') return false
  if (isConfigured) {
    return html`<p class="hint">
      The secret comes from <code>${variable}</code>, which wins over one that is set here. To
      rotate it, set that to the new one, and <code>${variable}_PREVIOUS</code> to the old one.
    </p>`
  }
  if (trust_mode === 'signed' && !canSign) {
    return html`<p class="hint">
      To set a secret here, which is stored encrypted, set <code>GATEHOUSE_SECRET_KEY</code> first.
    </p>`
  }
  return disclosed(isStored ? 'Rotate…' : 'Set the secret…', rotateForm(card, key), {
    open: rotation !== undefined,
  })
}

function rotateForm(card: ProviderCard, key: string): Html {
  const { scheme, isGiven, isStored, rotatedAt, overlaps, overlap, previous_until: until } = card
  const form = { id: `rotate-${key}`, typed: { overlap }, ...card.rotation }
  const secret = isStored ? 'new secret' : 'secret'
  return postForm(
    { class: 'stack', action: `/providers/${key}/rotate`, target: '#providers' },
    html`${refusal(form)}
      <p>
        ${isGiven ? `The provider makes the ${secret}.` : `A ${secret} is made and shown once.`}
        ${
          until !== null &&
          html`<strong>The previous secret, which still works, stops working now.</strong>`
        }
      </p>
      ${hiddenField('rotated_at', rotatedAt)}
      ${isStored && select(form, 'overlap', 'The current one is accepted', overlaps)}
      ${scheme !== null && secretField(form, isGiven)}
      <p>${submit(isStored ? 'Rotate secret' : 'Set secret', { id: `rotate-button-${key}` })}</p>`,
  )
}

/** Where the sender makes the signing secret, it is pasted here. */
export function secretField(form: Form, isGiven: boolean): Html {
  const label = isGiven
    ? 'Secret that the sender made'
    : 'Secret, when the sender made it (empty = one is made)'
  // Never shown again, not even in a form that was refused.
  return field({ ...form, typed: {} }, 'secret', label, { required: isGiven, ...VERBATIM })
}

const REMOVED_WEBHOOK = 'Its sender is refused from then on.'
const REMOVED_QUEUE =
  'It is not read from then on; while HOOKS_QUEUE_CHANNELS names it, the next start adds it again.'

/** Removes a provider that somebody has added. */
export function removalOf({ name, family }: ProviderCard, key: string): Html {
  const removed = family === 'queue' ? REMOVED_QUEUE : REMOVED_WEBHOOK
  const form = removalForm('Remove', name, `${removed} Its events stay in the log.`, {
    action: `/providers/${key}/remove`,
    target: '#providers',
  })
  return disclosed('Remove…', form)
}
