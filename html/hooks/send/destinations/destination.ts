import type { Delivery, Destination } from '../../../../db/hooks/send/destinations.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { FormState, Page } from '../../../../kernel/http/view.ts'
import { hiddenField, postForm, refusal, removalForm, submit, switchForm } from '../../../form.ts'
import { breakable, disclosed, factLine, polled, section } from '../../../parts.ts'
import { lastAnswer } from '../../layout.ts'
import { deliveriesList, listUrl } from './deliveries.ts'
import { destinationFacts, DISABLED_NOTE, eventsText, placeText, stateBadge } from './facts.ts'
import { destinationFields, testButton, testResult, urlField, type FormHelp } from './form.ts'

/** What `/destinations/{name}` shows. */
export interface DestinationView {
  destination: Destination
  /** Up to where waiting and dead deliveries are counted. */
  countedTo: number
  /** The form that changes it. */
  form: FormState
  help: FormHelp
  /** Which deliveries are listed, and after which event. */
  state: Delivery['state']
  cursor: string
  deliveries: readonly Delivery[]
  next_cursor: string | null
}

/** `/destinations/{name}`: its state, its deliveries, and its settings. */
export function destinationPage(view: DestinationView): Page {
  const { name } = view.destination
  return {
    title: name,
    section: 'destinations',
    body: destinationFragment(view),
  }
}

/** The page's content, and the answer to its forms. */
export function destinationFragment(view: DestinationView): Html {
  const { destination, countedTo, help } = view
  const { name, delivered } = destination
  const known = [
    stateBadge(destination),
    breakable(placeText(destination)),
    eventsText(destination, help.providers),
    `${delivered.toLocaleString('en')} delivered`,
    html`last answer: ${lastAnswer(destination, 'none yet')}`,
  ]
  const all = html`<div id="facts">
    ${destinationFacts(destination, { countedTo, providers: help.providers })}
  </div>`
  return html`<div id="destination" data-destination="${name}">
    <p class="crumb"><a href="/destinations">Destinations</a> / ${name}</p>
    <div id="title">
      <div class="title-line">
        <h1 id="name-${name}">${name}</h1>
        ${enabledSwitch(destination)}
      </div>
      ${factLine(known)}
    </div>
    ${stateSection(view)}
    <div class="panel">${setForm(view)} ${disclosed('All facts…', all)} ${removal(name)}</div>
  </div>`
}

/** It takes the place of the title alone: what is typed or ticked elsewhere stays. */
function enabledSwitch({ name, disabled_by }: Destination): Html {
  return switchForm(name, disabled_by === null, {
    action: `/destinations/${name}/enabled`,
    target: '#title',
    'hx-select': '#title',
  })
}

/** What is live on the page. */
function stateSection(view: DestinationView): Html {
  const { destination, state, cursor } = view
  const path = listUrl(destination, state, cursor)
  const own = {
    id: 'state',
    class: 'panel',
    ...polled(path, 3, 'state'),
    // The switch: failures or another person may disable the destination.
    'hx-select-oob': '#title:outerMorph,#facts:outerMorph',
  }
  const content = html`${destination.disabled_by === 'failures' && DISABLED_NOTE}
  ${deliveriesList(view)}`
  return section('state-title', 'Deliveries', content, own)
}

function setForm({ destination, form: state, help }: DestinationView): Html {
  const { name } = destination
  const form = { id: 'set', ...state }
  const own = {
    id: 'set-destination',
    class: 'stack',
    action: `/destinations/${name}`,
    target: '#destination',
  }
  const content = html`<p class="muted">
      Waiting deliveries stay. New filters apply to events after the last checked one.
    </p>
    ${refusal(form)}
    ${postForm(
      own,
      html`${hiddenField('version', destination.version)} ${urlField(form)}
        ${destinationFields(form, help, destination)}
        <p class="actions">
          ${submit('Save', { class: 'primary', id: 'set-button' })}
          ${testButton(`/destinations/${name}/test`)}
        </p>
        ${testResult(help.tested)}`,
    )}`
  const isOpen = state.fault !== undefined || help.tested !== undefined
  return disclosed('Edit, send a test…', content, { id: 'edit', open: isOpen })
}

function removal(name: string): Html {
  const effect = 'Its waiting events are not delivered; attempts stay with their events.'
  const form = {
    action: `/destinations/${name}/remove`,
    target: '#destination',
    'hx-push-url': '/destinations',
  }
  return disclosed('Remove…', removalForm('Remove', name, effect, form))
}
