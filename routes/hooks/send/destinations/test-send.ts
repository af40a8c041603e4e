import { TEST_NEW_PATH } from '../../../../html/hooks/send/destinations/new.ts'
import { testResult, type TestState } from '../../../../html/hooks/send/destinations/form.ts'
import type { Actor } from '../../../../kernel/actor.ts'
import { newForm, type FormState, type Typed, type View } from '../../../../kernel/http/view.ts'
import {
  testDestination,
  testDraft,
  TestResult,
  type TestParts,
} from '../../../../services/hooks/send/destinations/test-send.ts'
import { api, form, type HooksRoutes } from '../../kit.ts'
import { newView, shownAgain } from './destinations.ts'
import { AddFields, SetFields, toBody, toNewBody, withoutSecrets } from './form.ts'
import { destinationView, params, path, refuses, usual } from './view.ts'

/** A made-up event for a destination: as it is configured, or as a form describes it. */
export const testSendEndpoints = [
  api({
    ...usual,
    method: 'POST',
    path: `${path}/test`,
    id: 'testDestination',
    summary: 'Send a made-up event to a destination once, and get the answer.',
    description:
      'It is signed and guarded as a delivery, has the header X-Gatehouse-Test, and counts as none.',
    params,
    returns: { description: 'What the receiver answered', schema: TestResult },
    refuses,
    answer: ({ app, actor, params: { name } }) => testDestination(partsOf(app, actor), name),
  }),

  form({
    path: TEST_NEW_PATH,
    body: AddFields,
    async answer({ app, actor, body }) {
      const { name, ...given } = toNewBody(body)
      const tested = await testDraft(partsOf(app, actor), name, given)
      const shown = newForm(AddFields, typedAgain(body))
      return withResult(await newView(app, shown, tested), tested)
    },
    refused: async ({ app }, refused) =>
      withResult(await newView(app, shownAgain(refused)), refusalOf(refused)),
  }),

  form({
    path: '/destinations/:name/test',
    params,
    body: SetFields,
    async answer({ app, actor, params: { name }, body }) {
      const tested = await testDraft(partsOf(app, actor), name, toBody(body))
      const shown = newForm(SetFields, typedAgain(body))
      return withResult(await destinationView(app, name, { form: shown, tested }), tested)
    },
    refused: async ({ app, params: { name } }, refused) => {
      const view = await destinationView(app, name, { form: shownAgain(refused) })
      return withResult(view, refusalOf(refused))
    },
  }),
]

function partsOf({ hooks }: HooksRoutes, actor: Actor): TestParts {
  return { ...hooks, actor }
}

/** The page shows the form again. A script keeps the form, and shows the result alone. */
function withResult({ page }: View, tested: TestState): View {
  return { page, fragment: () => testResult(tested) }
}

/** Why a test was refused. Without the fields its message stands for itself. */
function refusalOf({ fault }: FormState): TestState {
  return { id: 'test', fault }
}

/** What a form sent, as its fields show it again, without the secrets. */
function typedAgain(body: Readonly<Record<string, unknown>>): Typed {
  const texts = Object.entries(body).map(([name, value]) => {
    return [name, Array.isArray(value) ? value.join('\n') : String(value ?? '')] as const
  })
  return withoutSecrets(Object.fromEntries(texts))
}
