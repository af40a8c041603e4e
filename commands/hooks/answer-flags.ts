import { validate } from '../../kernel/validate.ts'
import { accepted } from '../../kernel/variables.ts'
import {
  AnswerFields,
  MAX_BODY,
  METHODS,
  METHODS_FORM,
  readAnswers,
  STATUS_FORM,
  type AnswerChanges,
} from '../../services/hooks/receive/deliveries/answers.ts'
import { fieldsOf, readFields, text, value, type Call } from '../frame/command.ts'

// The flags that choose the methods of a generic receiver, and its answer to a stored delivery.

const methods = accepted(`${METHODS_FORM}, with commas`, (given) => {
  const names = given.toUpperCase().split(',')
  const chosen = METHODS.filter((method) => names.includes(method))
  return chosen.length === names.length ? chosen : undefined
})

export const ANSWER_FLAGS = {
  methods: value('METHODS', `what is accepted, POST unless given: ${methods.form}`, methods),
  'answer-status': text('STATUS', `the status of the answer: ${STATUS_FORM}`),
  'answer-type': text(
    'TYPE',
    'the type of its body: text/plain (unless given), application/json or application/xml',
  ),
  'answer-body': {
    ...text('TEXT', `its body, ${MAX_BODY} bytes at most; - is standard input`),
    fromInput: true,
  },
} as const

type AnswerFlags = Call<Record<string, never>, typeof ANSWER_FLAGS>['flags']

/** What the flags choose. */
export function answersOf(flags: AnswerFlags): AnswerChanges {
  return readFields(() => readAnswers(validate(AnswerFields, fieldsOf(AnswerFields, flags))))
}
