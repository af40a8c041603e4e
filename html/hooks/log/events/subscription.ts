import { html, type Html } from '../../../../kernel/html.ts'
import type { FormState } from '../../../../kernel/http/view.ts'
import { postForm, refusal, submit } from '../../../form.ts'

/** What the page of an event shows of a subscription that its sender asks to be confirmed. */
export interface SubscriptionView {
  /** Null for any other event. */
  subscription: {
    topic: string
    /** The provider accepts events of this topic: the operator named it, or has confirmed it. */
    isNamed: boolean
  } | null
  /** What was refused. */
  confirmation?: Partial<FormState>
}

const NEW =
  "Events of this topic are refused until then. To confirm adds the topic to the provider's " +
  "topics, and fetches the sender's address for it."
const NAMED =
  "The topic is one of the provider's: this was confirmed by itself when it came. If the sender " +
  'still waits, confirm it again.'

/** The button that confirms it. */
export function subscriptionNote(id: number, view: SubscriptionView): Html | false {
  const { subscription, confirmation } = view
  if (subscription === null) return false
  const form = { class: 'note', action: `/log/${id}/confirm`, target: '#event-body' }
  return postForm(
    form,
    html`${refusal({ id: 'confirm', ...confirmation })}
      <p>
        The sender asks to confirm the subscription to the topic
        <code><bdi>${subscription.topic}</bdi></code
        >. ${subscription.isNamed ? NAMED : NEW}
      </p>
      <p>${submit('Confirm', { id: 'confirm-button', class: 'primary' })}</p>`,
  )
}
